"""PostgreSQL: a cluster of its own below DATABASE, at a socket only; commits by pgbench, prepared statements.

  postgresql_peer.py BINARIES commits DATABASE WRITERS SECONDS
"""

import glob
import os
import pwd
import shutil
import subprocess
import sys

from python_peer import NAME, show


def words_as_server(words):
    """The server does not run as root."""
    return ["runuser", "-u", "postgres", "--", *words] if os.geteuid() == 0 else words


def main():
    binaries, what, database, writers, seconds = sys.argv[1:]
    if what != "commits":
        sys.exit(__doc__)
    run = os.path.abspath(database)
    os.makedirs(run)
    if os.geteuid() == 0:
        owner = pwd.getpwnam("postgres")
        os.chown(run, owner.pw_uid, owner.pw_gid)
    data, script = os.path.join(run, "data"), os.path.join(run, "insert.sql")
    sockets = "/tmp/bench-pg-%d" % os.getpid()  # a socket's path must be short
    os.mkdir(sockets)
    os.chmod(sockets, 0o777)

    def call(program, *words):
        done = subprocess.run(words_as_server([os.path.join(binaries, program), *words]), cwd=run, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit("%s: %s" % (program, done.stdout.strip()))
        return done.stdout

    call("initdb", "-D", data)
    call("pg_ctl", "-D", data, "-o", "-k %s -c listen_addresses=" % sockets, "-l", os.path.join(run, "server.log"), "-w", "start")
    try:
        call("psql", "-q", "-h", sockets, "postgres", "-c", "CREATE SEQUENCE s CACHE 100; CREATE TABLE nodes(id bigint PRIMARY KEY, name text)")
        with open(script, "w") as file:
            file.write("INSERT INTO nodes VALUES (nextval('s'), '%s');\n" % NAME)
        os.chmod(script, 0o644)
        said = call("pgbench", "-n", "-h", sockets, "-M", "prepared", "-f", script, "-c", writers, "-j", str(min(int(writers), os.cpu_count())),
                    "-T", str(max(1, round(float(seconds)))), "-l", "postgres")
    finally:
        call("pg_ctl", "-D", data, "-m", "fast", "stop")
        shutil.rmtree(sockets, ignore_errors=True)
    show("commits", "/s", next(float(line.split()[2]) for line in said.splitlines() if line.startswith("tps")))
    times = []
    for log in glob.glob(os.path.join(run, "pgbench_log.*")):
        with open(log) as file:
            times += [int(line.split()[2]) for line in file]
    times.sort()
    show("p50", "us", times[len(times) // 2])
    show("p99", "us", times[len(times) - 1 - len(times) // 100])


if __name__ == "__main__":
    main()
