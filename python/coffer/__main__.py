"""`coffer` and `python -m coffer`: the command that the package brings along."""

import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "coffer")
    if not os.path.exists(program):
        sys.exit("coffer: this installation of the package does not contain the command")
    os.execv(program, ["coffer", *sys.argv[1:]])


if __name__ == "__main__":
    main()
