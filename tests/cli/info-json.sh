# One line of JSON per file, file, format and size first; "error" says why a file could not be read.
cd "$DATA/vectors/mscan"
coffer info --json two-sequences.mscan
coffer info --json bad-json.mscan bad-magic.mscan
echo "exit $?"
coffer info --json ./*.mscan 2>/dev/null | python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
for line in lines:
    assert list(line)[:3] == ["file", "format", "size"], line
print(len(lines), "lines")'
