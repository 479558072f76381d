# Tables as comma-separated values: a header line, whole numbers, quotes where RFC 4180 asks for them.
python3 "$DATA/support/trace.py" run.mlyze
set=$DATA/vectors/mldf/all-types-208.mldf
show() {
    echo "\$ coffer $*"
    coffer "$@"
}
show ls "$DATA/vectors/mcf/plain.mcf" --csv
show formats --csv
show stats "$DATA/vectors/mcf/plain.mcf" --top 2 --csv
show stats "$DATA/vectors/pycauset/dense-f64.pycauset" --csv
show stats run.mlyze --csv --top 3
show peak run.mlyze --csv --top 2
show leaks run.mlyze --csv --by function
show temporaries run.mlyze --csv --by file
show head "$set" -n 2 --csv
show head "$set" -n 2 --field label --field caption --field label
show get "$set" 0..2 --field caption --field label --csv
show get "$set" 0 --field caption --field label
show stats "$set" --field label --field score --csv
cp "$DATA/vectors/pycauset/dense-f64.pycauset" m.pycauset
coffer set m.pycauset properties.label=one >/dev/null
show log m.pycauset --csv
show quantize "$DATA/vectors/mcf/plain.mcf" --dry-run --type q8 --csv
python3 "$DATA/support/trace.py" more.mlyze more
show diff run.mlyze more.mlyze --what leaks --csv
show diff "$DATA/vectors/pycauset/dense-f64.pycauset" m.pycauset --csv
show diff "$DATA/compat/mcf/hf-folder/model.safetensors" "$DATA/compat/mcf/mantle-q4.mcf" --csv -n 2
echo "# quotes, commas and line breaks, read back"
printf '%s\n' '{"a": "x, \"y\"", "b": 1}' '{"a": "two\nlines", "b": 2}' '{"a": "plain", "b": 3}' >list.jsonl
coffer pack list.jsonl quoted.mldf >/dev/null
coffer head quoted.mldf --csv | python3 -c '
import csv, sys
for row in csv.reader(sys.stdin): print(row)'
echo "# one or the other"
for verb in ls stats; do
    coffer $verb "$DATA/vectors/mcf/plain.mcf" --csv --json 2>&1
    echo "exit $?"
done
coffer get "$set" 0 --csv 2>&1
echo "exit $?"
