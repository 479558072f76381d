# A different layout with the same content is not a difference; 1 means different, 3 cannot be compared.
cd "$DATA/vectors/mscan"
coffer diff two-sequences.mscan padded-json.mscan
echo "exit $?"
coffer diff two-sequences.mscan tokens-without-records.mscan
echo "exit $?"
coffer diff two-sequences.mscan empty.mscan --max 2
echo "exit $?"
coffer diff --json two-sequences.mscan empty.mscan --max 1 | python3 -m json.tool >/dev/null && echo "valid JSON"
coffer diff --json two-sequences.mscan compact-json.mscan | python3 -c '
import json, sys
print(json.load(sys.stdin)["equal"])'
coffer diff two-sequences.mscan truncated-records.mscan
echo "exit $?"
coffer diff two-sequences.mscan missing.mscan
echo "exit $?"
