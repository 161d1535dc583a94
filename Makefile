# The usual words for what CMake and the scripts do.
PREFIX ?= /usr/local
JOBS ?= 2

all:
	cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	ninja -C build/release -j$(JOBS)

install: all
	cmake --install build/release

package:
	cmake --preset release -DCMAKE_INSTALL_PREFIX=/usr >/dev/null
	ninja -C build/release -j$(JOBS)
	cd build/release && cpack -G DEB

test check:
	scripts/test

clean:
	rm -rf build/release build/dev build/asan build/clang

.PHONY: all install package test check clean
