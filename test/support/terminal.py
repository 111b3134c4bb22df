"""Runs a program on a terminal of its own: terminal.py COLUMNS STEPS PROGRAM ARGUMENT ...

STEPS is a JSON list of pairs: a text to wait for, and what to type then. What the program writes goes to standard
output as the terminal got it; the exit code is the program's.
"""

import fcntl
import json
import os
import pty
import struct
import sys
import termios

columns, steps, command = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]
child, terminal = pty.fork()
if child == 0:
    # The size is set before the program begins, so that it never sees another.
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp(command[0], command)
seen = b""
while True:
    try:
        chunk = os.read(terminal, 4096)
    except OSError:
        break
    if not chunk:
        break
    seen += chunk
    sys.stdout.buffer.write(chunk)
    while steps and steps[0][0].encode() in seen:
        seen = seen.split(steps[0][0].encode(), 1)[1]
        os.write(terminal, steps.pop(0)[1].encode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
