"""Small file systems for tests that run as root: an ext4 image, mounted over a loop device in a mount namespace of this process,
so that nothing of it is seen outside or outlives the test."""

import ctypes
import os
import subprocess

CLONE_NEWNS = 0x00020000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
_possible = None


def possible():
    """The reason why not, or nothing. The first call moves this process into a mount namespace of its own."""
    global _possible
    if _possible is None:
        _possible = try_namespace()
    return _possible


def try_namespace():
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0:
        return "mounting a small disk needs root"
    if not os.access("/dev/loop-control", os.W_OK) or not os.access("/sbin/mkfs.ext4", os.X_OK):
        return "there are no loop devices, or there is no mkfs.ext4"
    if libc.unshare(CLONE_NEWNS) != 0 or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        return "no mount namespace may be made: %s" % os.strerror(ctypes.get_errno())
    return ""


class SmallDisk:
    """`folder` is the root of a file system of so many MiB. Raises OSError when it cannot be mounted."""

    def __init__(self, image, folder, mebibytes):
        self.folder = folder
        with open(image, "wb") as file:
            file.truncate(mebibytes << 20)
        os.mkdir(folder)
        for words in (["/sbin/mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", image],
                      ["mount", "-o", "loop", image, folder]):
            done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
            if done.returncode != 0:
                raise OSError("%s: %s" % (words[0], done.stderr.decode("utf-8", "replace").strip()))
        os.chmod(folder, 0o700)

    def unmount(self):
        subprocess.run(["umount", self.folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)

    def free(self):
        """Bytes that can still be written."""
        stat = os.statvfs(self.folder)
        return stat.f_bfree * stat.f_frsize

    def fill(self, left=0):
        """Writes a file until only so many bytes are free (0: until nothing more can be written)."""
        path = os.path.join(self.folder, "ballast")
        with open(path, "ab", buffering=0) as file:
            for piece in (1 << 20, 1 << 16, 4096):
                while left == 0 or self.free() - piece >= left:
                    try:
                        if file.write(b"\0" * piece) < piece:
                            break
                    except OSError:
                        break
            os.fsync(file.fileno())

    def give_back(self):
        os.remove(os.path.join(self.folder, "ballast"))
