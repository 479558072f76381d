# The output path of a repair, and its report.
cd "$DATA/vectors/mscan"
tmp=$OLDPWD
coffer repair two-sequences.mscan
echo "exit $?"
coffer repair trailing-bytes.mscan -o "$tmp/cut.mscan"
coffer repair trailing-bytes.mscan -o "$tmp/kept.mscan" --keep-tail
coffer info --json "$tmp/cut.mscan" "$tmp/kept.mscan" | python3 -c '
import json, sys
print([json.loads(line)["records"] for line in sys.stdin])'
coffer repair truncated-records.mscan --json -o "$tmp/json.mscan" | python3 -c '
import json, sys
report = json.load(sys.stdin)
report["output"] = report["output"].rsplit("/", 1)[1]
print(json.dumps(report))'
echo "--- to standard output, from standard input"
coffer repair - -o - <trailing-bytes.mscan >"$tmp/stream.mscan"
cmp "$tmp/stream.mscan" "$tmp/cut.mscan" && echo "the same bytes"
coffer repair - <trailing-bytes.mscan
echo "exit $?"
echo "--- without metadata, the records are still saved"
coffer repair bad-json.mscan -o "$tmp/saved.mscan"
echo "exit $?"
echo "--- what cannot be saved"
coffer repair bad-magic.mscan -o "$tmp/none.mscan"
echo "exit $?"
coffer repair two-sequences.mscan -o "$tmp/no/such/folder.mscan"
echo "exit $?"
ls -A "$tmp"
