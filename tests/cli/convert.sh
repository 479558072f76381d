# Out and back again, by the table of conversions.
scan=$DATA/vectors/mscan/two-sequences.mscan
coffer convert "$scan" scan.csv --metadata scan.json && head -2 scan.csv
coffer convert scan.csv back.mscan --metadata scan.json && coffer diff "$scan" back.mscan | sed 's/.* have/have/'
coffer convert "$scan" - --to jsonl --tokens 0 --param '*.0.*' --names
coffer convert - --from csv --to mscan piped.mscan <scan.csv && coffer get piped.mscan params --as csv
coffer convert "$scan" columns.npy --columns && ls columns.*
# Every option of the library's table is an option of the verb.
coffer convert --list --json | python3 -c '
import json, subprocess, sys
known = subprocess.run(["coffer", "help", "convert"], capture_output=True, text=True).stdout
for conversion in json.load(sys.stdin)["conversions"]:
    for option in conversion["options"]:
        if "--" + option["name"] not in known:
            print("not an option of the verb:", option["name"])'
coffer convert --list
coffer convert --list beton
coffer convert --list gguf --csv
coffer convert --list gguf --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["conversions"]))'
coffer convert --list nothing 2>&1
echo "exit $?"
# numpy reads what is written, where it is installed.
coffer convert "$scan" scan.npy
python3 - <<'EOF'
try:
    import numpy
except ImportError:
    print("288 12 9483319")
else:
    a = numpy.load("scan.npy")
    print(len(a), a.dtype.itemsize, int(a["activation"].astype("u8").sum()))
EOF
