#!/usr/bin/env python3
"""The rules of the house that a machine can check, over the sources as they stand (no build needed).

Each function below is one rule and yields "file:line: what is wrong". A rule that a place must break has its exception here,
with the reason, and nowhere else.
"""

import os
import re
import subprocess
import sys
import tempfile

ROOT = os.environ.get("SLUICE_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODULES = {  # what each folder may include, besides itself and include/sluice
    "platform": (),
    "locks": ("platform",),
    "shm": ("locks", "platform"),
    "store": ("locks", "platform"),
    "adapters": ("store", "shm", "locks", "platform"),
    "worker": ("store", "shm", "locks", "platform"),
    "coord": ("adapters", "worker", "store", "shm", "locks", "platform"),
    "lib": ("coord", "adapters", "worker", "store", "shm", "locks", "platform"),
    "cli": ("coord", "adapters", "worker", "store", "shm", "locks", "platform"),
}
ADAPTERS = ("load", "mutate", "merge", "schema", "optimize", "index", "revert")
LINES_MAX = 900

# The machine, which only platform/ may ask. Calls only: not members (x->open) and not declarations of our own names.
SYSTEM_CALLS = """
    open openat open64 creat close read write pread pwrite readv writev pread64 pwrite64 lseek truncate ftruncate fallocate
    posix_fallocate posix_fadvise fsync fdatasync sync syncfs sync_file_range rename renameat renameat2 link linkat symlink
    symlinkat unlink unlinkat remove mkdir mkdirat rmdir opendir fdopendir readdir closedir scandir nftw ftw stat fstat lstat
    fstatat statx statfs fstatfs access faccessat realpath readlink readlinkat chmod fchmod fchmodat chown fchown umask flock
    fcntl lockf ioctl mmap munmap mremap msync madvise mprotect mlock memfd_create shm_open fork vfork clone execv execve
    execvp execl execlp posix_spawn wait waitpid waitid wait4 kill killpg raise tgkill signal sigaction sigprocmask signalfd
    pidfd_open pidfd_send_signal prctl setsid setrlimit getrlimit getpid getppid getuid geteuid getgid alarm pause sleep usleep
    nanosleep clock_nanosleep clock_gettime gettimeofday time timerfd_create localtime localtime_r getrandom getentropy random
    rand srand drand48 poll ppoll select pselect epoll_create1 epoll_ctl epoll_wait eventfd pipe pipe2 dup dup2 dup3 socket
    socketpair bind listen accept accept4 connect send recv sendmsg recvmsg syscall sysconf get_nprocs sched_yield
    sched_getaffinity isatty fopen fdopen freopen popen tmpfile mkstemp mkdtemp fileno uname gethostname
    pthread_create pthread_cond_wait sem_wait sem_post
""".split()
BANNED = """
    strcpy strcat strncat sprintf vsprintf strtok gets atoi atol atoll atof system popen alloca tmpnam tempnam mktemp
    setlocale strerror asctime ctime gmtime localtime rand srand
""".split()


def files(*suffixes, folders=None):
    for folder in folders or sorted(os.listdir(ROOT)):
        top = os.path.join(ROOT, folder)
        if folder.startswith((".git", "build")) or folder == ".venv":
            continue
        if os.path.isfile(top):
            if top.endswith(suffixes):
                yield folder
            continue
        for path, names, found in os.walk(top):
            names[:] = sorted(n for n in names if n not in ("build", "__pycache__"))
            for name in sorted(found):
                full = os.path.join(path, name)
                if name.endswith(suffixes) and not os.path.islink(full):
                    yield os.path.relpath(full, ROOT)


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def blank(match):
    kept = match.group(0)[0] if match.group(0)[0] in "\"'" else " "
    return kept + re.sub(r"[^\n]", " ", match.group(0)[1:-1]) + (kept if kept != " " else " ")


def code_of(path):
    """The text without comments and the insides of strings, line numbers kept."""
    return TOKEN.sub(blank, text_of(path))


def calls(path, names):
    pattern = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(map(re.escape, names)))
    for number, line in enumerate(code_of(path).split("\n"), 1):
        if line.lstrip().startswith("#include"):
            continue
        for match in pattern.finditer(line):
            yield number, match.group(1)


def only_platform_asks_the_machine():
    for module in MODULES:
        if module == "platform":
            continue
        for path in files(".c", ".h", folders=[module]):
            for number, name in calls(path, SYSTEM_CALLS):
                yield "%s:%d: calls %s, which only platform/ may" % (path, number, name)


def includes_go_downward():
    for module, below in MODULES.items():
        for path in files(".c", ".h", folders=[module]):
            for number, line in enumerate(text_of(path).split("\n"), 1):
                match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                if not match:
                    continue
                target = match.group(1).split("/")[0]
                if target not in MODULES:
                    yield '%s:%d: include "%s": name it from the root' % (path, number, match.group(1))
                elif target != module and target not in below:
                    yield "%s:%d: %s must not use %s" % (path, number, module, match.group(1))


def adapters_never_call_each_other():
    for path in files(".c", ".h", folders=["adapters"]):
        own = os.path.basename(path)[:-2]
        for number, line in enumerate(text_of(path).split("\n"), 1):
            match = re.match(r'#include "adapters/(\w+)\.h"', line)
            if own in ADAPTERS and match and match.group(1) in ADAPTERS and match.group(1) != own:
                yield "%s:%d: an adapter uses another one: %s" % (path, number, match.group(1))


def no_banned_function():
    for path in files(".c", ".h"):
        for number, name in calls(path, BANNED):
            if name == "setlocale" and path.startswith("tests/"):
                continue  # to show that nothing depends on it
            yield "%s:%d: %s is banned (unbounded, locale-bound, or not reentrant)" % (path, number, name)


def nothing_is_left_to_do():
    marks = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b|not (yet )?implemented|unimplemented")
    for path in files(".c", ".h", ".py", ".sh", ".md", ".txt", ".cmake"):
        for number, line in enumerate(text_of(path).split("\n"), 1):
            if marks.search(line) and "marks = " not in line:
                yield "%s:%d: a mark of unfinished work: %s" % (path, number, line.strip()[:80])


def files_are_of_a_size_to_be_read():
    for path in files(".c", ".h", ".py", ".sh"):
        count = text_of(path).count("\n")
        if count > LINES_MAX:
            yield "%s:%d: longer than %d lines: is it one idea?" % (path, count, LINES_MAX)


def files_say_what_they_are_for():
    for path in files(".c", ".h"):
        if path.endswith(".c") and os.path.exists(os.path.join(ROOT, path[:-2] + ".h")):
            continue  # its header says it
        if not text_of(path).lstrip().startswith("/*"):
            yield "%s:1: no head comment" % path


def headers_are_guarded_by_their_path():
    for path in files(".h", folders=list(MODULES)):
        guard = re.sub(r"[^A-Z0-9]", "_", path.upper())
        text = text_of(path)
        if "#ifndef %s\n#define %s\n" % (guard, guard) not in text:
            yield "%s:1: the include guard is not %s" % (path, guard)


def the_contract_is_held_against_tests_that_exist():
    gate = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts", "contract-gate")
    if os.path.exists(os.path.join(ROOT, "tests", "contracts")):
        done = subprocess.run([sys.executable, gate, "--root", ROOT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            yield from done.stderr.splitlines() or ["scripts/contract-gate failed"]


def no_path_of_a_building_machine():
    pattern = re.compile(r"(?<![\w.])/(work|farm|home/[a-z]+|root)/[a-z]")
    for path in files(".c", ".h", ".py", ".sh", ".md", ".txt", ".cmake", ".json"):
        for number, line in enumerate(text_of(path).split("\n"), 1):
            if pattern.search(line) and "re.compile" not in line:
                yield "%s:%d: a path of some machine: %s" % (path, number, line.strip()[:80])


def every_failpoint_is_used():
    table = "platform/failpoint.h"
    if not os.path.exists(os.path.join(ROOT, table)):
        return
    used = set()
    for path in files(".c", ".h", folders=list(MODULES)):
        if not path.startswith("platform/failpoint."):
            used.update(re.findall(r"\b(?:PF_FAILPOINT\(|PF_FP_)(\w+)", code_of(path)))
    for number, line in enumerate(text_of(table).split("\n"), 1):
        match = re.match(r'\s*X\((\w+), "[\w.]+"\)', line)
        if match and match.group(1) not in used:
            yield "%s:%d: the failpoint %s is passed nowhere" % (table, number, match.group(1))


# Each rule with a breach of it, planted in an otherwise empty tree: a rule that does not see its breach proves nothing.
RULES = {
    only_platform_asks_the_machine: ("store/x.c", "int f(void)\n{\n    return fsync(3);\n}\n"),
    includes_go_downward: ("store/x.c", '#include "coord/write.h"\n'),
    adapters_never_call_each_other: ("adapters/load.c", '#include "adapters/merge.h"\n'),
    no_banned_function: ("platform/x.c", "void f(char *a, char *b)\n{\n    strcpy(a, b);\n}\n"),
    nothing_is_left_to_do: ("cli/x.c", "/* TO" + "DO: all */\n"),
    files_are_of_a_size_to_be_read: ("cli/x.c", "\n" * (LINES_MAX + 1)),
    files_say_what_they_are_for: ("cli/x.c", "int x;\n"),
    headers_are_guarded_by_their_path: ("cli/x.h", "#ifndef X_H\n#define X_H\n#endif\n"),
    the_contract_is_held_against_tests_that_exist: ("tests/contracts/durability-isolation.json", "{}\n"),
    every_failpoint_is_used: ("platform/failpoint.h", '    X(ARM_NEVER, "arm.never")\n'),
    no_path_of_a_building_machine: ("docs/x.md", "See /ro" + "ot/tree.\n"),
}
HARMLESS = {
    "store/x.h": "/* A call of fsync(), in words. */\n#ifndef STORE_X_H\n#define STORE_X_H\nint (*open)(int fd);\n#endif\n",
    "store/x.c": '/* strcpy( and TO DO. */\n#include "platform/volume.h"\nconst char *f(t *x)\n{\n'
                 '    return x->open(3) ? "rename(" : pf_open(x);\n}\n',
}


def found_in(tree, rule):
    """The breaches of a rule in a made tree of {path: text}."""
    global ROOT
    before = ROOT
    with tempfile.TemporaryDirectory() as ROOT:
        try:
            for path, text in tree.items():
                os.makedirs(os.path.dirname(os.path.join(ROOT, path)), exist_ok=True)
                with open(os.path.join(ROOT, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return list(rule())
        finally:
            ROOT = before


def main():
    failed = 0
    for rule, planted in RULES.items():
        breaches = list(rule())
        if not found_in(dict([planted]), rule):
            breaches.append("the rule does not see its own planted breach")
        breaches += ["the rule sees a breach where none is: " + b for b in found_in(HARMLESS, rule)]
        print("%s %s" % ("FAIL" if breaches else "ok  ", rule.__name__))
        for breach in breaches:
            print("     " + breach)
        failed += bool(breaches)
    print("%d passed, %d failed" % (len(RULES) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
