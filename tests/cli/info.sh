# What is in a file; damage does not keep the rest from being shown.
cd "$DATA/vectors/mscan"
coffer info two-sequences.mscan
echo "exit $?"
coffer info truncated-records.mscan
echo "damaged: exit $?"
coffer info padded-json.mscan bad-magic.mscan 2>&1
echo "exit $?"
coffer info two-sequences.mscan missing.mscan 2>&1 | tail -n 2
coffer info - <two-sequences.mscan | head -n 2
cat two-sequences.mscan | coffer info --json - | python3 -c '
import json, sys
info = json.load(sys.stdin)
print(list(info)[:3], info["file"], info["format"], info["size"], info["records"])'

echo "# a matrix that cannot be opened: its slots say why"
cd ../pycauset
coffer info newest-metadata-corrupt.pycauset 2>/dev/null
echo "exit $?"
coffer info both-slots-corrupt.pycauset 2>/dev/null | grep -E 'valid|why'
