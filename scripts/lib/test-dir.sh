# test-dir.sh (sourced): where tests and the quickstart put their graphs.
#
# use_test_dir sets and exports SLUICE_TEST_DIR: as given; else below the checkout's build folder when that lies on an
# admitted filesystem; else, as root, on a loop-mounted ext4 image; else it says so and fails. leave_test_dir unmounts the image.
# The first build folder argument is where the image and the folder go.

test_dir_image=
test_dir_mount=
test_dir_loop=

admitted() { # the kind of filesystem of a folder is one that Sluice admits
  case "$(stat -f -c %T "$1")" in
    ext2/ext3 | xfs | btrfs | f2fs) return 0 ;;
    *) return 1 ;;
  esac
}

mount_image() {
  test_dir_image=$1/test-disk.img
  test_dir_mount=$(mktemp -d)
  rm -f "$test_dir_image"
  truncate -s 6G "$test_dir_image" && mkfs.ext4 -q -F "$test_dir_image" || return 1
  # A container may lack the device file that the kernel would give us.
  test_dir_loop=$(losetup -f) || return 1
  [ -e "$test_dir_loop" ] || mknod "$test_dir_loop" b 7 "${test_dir_loop#/dev/loop}" || return 1
  losetup "$test_dir_loop" "$test_dir_image" && mount "$test_dir_loop" "$test_dir_mount"
}

use_test_dir() {
  local build=$1
  if [ -n "${SLUICE_TEST_DIR-}" ]; then
    mkdir -p "$SLUICE_TEST_DIR"
  elif admitted "$build"; then
    SLUICE_TEST_DIR=$(realpath "$build")/test-dir
    mkdir -p "$SLUICE_TEST_DIR"
  elif [ "$(id -u)" = 0 ] && mount_image "$build" 2>/dev/null; then
    SLUICE_TEST_DIR=$test_dir_mount
  else
    leave_test_dir
    echo "The checkout is on a filesystem that Sluice does not admit ($(stat -f -c %T "$build")): set SLUICE_TEST_DIR to a folder" \
      "on ext4, xfs, btrfs or f2fs, or run this as root where loop devices can be mounted." >&2
    return 1
  fi
  export SLUICE_TEST_DIR
}

leave_test_dir() {
  if [ -n "$test_dir_mount" ]; then
    umount "$test_dir_mount" 2>/dev/null || true
    [ -z "$test_dir_loop" ] || losetup -d "$test_dir_loop" 2>/dev/null || true
    rmdir "$test_dir_mount" 2>/dev/null || true
    rm -f "$test_dir_image"
    test_dir_mount=
  fi
}
