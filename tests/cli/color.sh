# Color into a pipe only when it is asked for.
cd "$DATA/vectors/mscan"
escapes() {
    "$@" 2>&1 | grep -c "$(printf '\033')"
}
echo "pipe: $(escapes coffer check bad-json.mscan)"
echo "always: $(escapes coffer check --color always bad-json.mscan)"
echo "never: $(escapes coffer check --color=never bad-json.mscan)"
echo "help: $(escapes coffer help check)"
on_terminal() {
    python3 -c '
import os, pty, sys
def read(fd):
    return os.read(fd, 65536)
pty.spawn(sys.argv[1:], read)' "$@" </dev/null | grep -c "$(printf '\033')"
}
export TERM=xterm
echo "terminal: $(on_terminal coffer check bad-json.mscan)"
echo "NO_COLOR: $(NO_COLOR=1 on_terminal coffer check bad-json.mscan)"
echo "empty NO_COLOR: $(NO_COLOR='' on_terminal coffer check bad-json.mscan)"
echo "dumb: $(TERM=dumb on_terminal coffer check bad-json.mscan)"
