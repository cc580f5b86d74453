#!/usr/bin/env python3
"""Write the checksums of a directory's files into its SHA256SUMS.

It runs at most once at a time, wherever it is started, and at most every ten minutes. The
next start ends a run that has hung for an hour. With ADLOCK_STORE=etcd://... (and one
ADLOCK_HOST) this holds for many machines. checksums.pl has the same lock.
"""

import hashlib
import os
import select
import subprocess
import sys


class Denied(Exception):
    """Another run has the lock, or it is too soon."""


class Lost(Exception):
    """The lock was lost meanwhile: another run may have done the same work."""


class Lock:
    """A lock of adlock's, for `with`. It is free when this process, its owner, dies."""

    def __init__(self, name, *options):
        self.command = ["adlock", "hold", "--owner", str(os.getpid()), *options, name]

    def __enter__(self):
        self.hold = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True
        )
        verdict, _, more = self.hold.stdout.readline().strip().partition(" ")
        if verdict == "acquired":
            self.fence = more.partition(" ")[2]  # "" in a lock directory
            return self
        self.hold.communicate()
        if verdict in ("busy", "too-soon", "full", "paused"):
            raise Denied(verdict + ": " + more)
        sys.exit(self.hold.returncode)  # hold has printed the error

    def __exit__(self, kind, value, trace):
        said, _ = self.hold.communicate("release 0\n" if kind is None else "release 1\n")
        if said != "released\n" and kind is None:
            raise Lost(said.strip() or "hold is gone")

    def lost(self):
        """hold prints nothing while the lock is held. If there is something to read, the
        lock is lost, or soon will be."""
        return bool(select.select([self.hold.stdout], [], [], 0)[0])


def checksums(directory, lock):
    for name in sorted(os.listdir(directory)):
        if lock.lost():
            raise Lost("while at work")
        path = os.path.join(directory, name)
        if name != "SHA256SUMS" and not os.path.isdir(path):
            with open(path, "rb") as file:
                yield hashlib.sha256(file.read()).hexdigest() + "  " + name + "\n"


def main():
    directory = os.path.realpath(sys.argv[1])
    try:
        with Lock("checksums " + directory, "--if-elapsed", "10m", "--expire-after", "1h", "--retry-failed") as lock:
            lines = "".join(checksums(directory, lock))
            with open(os.path.join(directory, "SHA256SUMS"), "w") as sums:
                sums.write(lines)
    except Denied as why:
        print(why)
    except Lost as why:
        sys.exit("lost: " + str(why))


main()
