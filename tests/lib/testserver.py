"""What the servers for tests have in common: a folder, processes, orders line by line."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

START_S = 60
STOP_S = 30
TRIES = 3  # a free port may be taken meanwhile; a killed server's children take a moment


class Failed(Exception):
    pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(true, process=None):
    """Ask until it is true; false when the time is over, or the process before that."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and (process is None or process.poll() is None):
        if true():
            return True
        time.sleep(0.02)
    return False


def connects(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def end(process, how):
    """End a process, however long it takes to listen."""
    if process is None or process.poll() is not None:
        return
    process.send_signal(how)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def pairs(words):
    wrong = [w for w in words if "=" not in w]
    if wrong:
        raise Failed(f"not NAME=VALUE: {wrong[0]}")
    return dict(w.split("=", 1) for w in words)


class Folder:
    """A folder of its own, in memory where there is some, and programs that run in it."""

    def __init__(self, prefix):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=memory))

    def run(self, *command):
        done = subprocess.run(command, cwd=self.path, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            raise Failed(f"{command[0]}: " + " ".join(done.stdout.split()))

    def spawn(self, name, *command):
        """Start a program; what it says is in the log of that name."""
        with open(self.path / f"{name}.log", "ab") as log:
            return subprocess.Popen(command, cwd=self.path, stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log)

    def log(self, name):
        text = (self.path / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        return " ".join(text.split()[-60:])

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


def say(text):
    print(text, flush=True)


def obey_all(server):
    for line in sys.stdin:
        try:
            server.obey(line.split())
            say("done")
        except Failed as error:
            say(f"failed {error}")


def main(make):
    """Serve with make(arguments), which has open, obey and close, to the input's end."""
    if os.getpgrp() != os.getpid():
        os.setsid()
    # The end of the input ends it, not what ends those who started it.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    server = None
    try:
        server = make(sys.argv[1:])
        say(" ".join(["ready", *server.open()]))
        obey_all(server)
    except (Failed, OSError) as error:
        say(f"failed {error}")
        return 1
    finally:
        if server:
            server.close()
    return 0
