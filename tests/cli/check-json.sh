# One line of JSON per file, with the public keys and no others.
cd "$DATA/vectors/mscan"
coffer check --json two-sequences.mscan bad-json.mscan bad-magic.mscan short-header.mscan
echo "exit $?"
coffer check --json ./*.mscan | python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
for line in lines:
    assert [k for k in line if k != "not_verified"] == ["file", "format", "ok", "findings"], line
    for finding in line["findings"]:
        assert list(finding) == ["code", "severity", "offset", "text"], finding
    assert line["ok"] == all(finding["severity"] != "error" for finding in line["findings"]), line
print(len(lines), "lines")'
coffer check --json two-sequences.mscan not-there.mscan
echo "exit $?"
