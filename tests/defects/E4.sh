# What the command knows is generated from its tables: formats, errors, help.
exec 2>&1
has() { # COMMAND… -- WORDS
    out=$1
    shift
    for word in "$@"; do
        case " $out " in *" $word "*) echo "has $word" ;; *) echo "lacks $word" ;; esac
    done
}
echo "formats: mcf"
has "$(coffer formats | sed -n 's/^mcf  *//p')" quantize compact convert
echo "formats: mlyze"
has "$(coffer formats | sed -n 's/^mlyze  *//p')" compress
echo "formats of other programs"
for kind in npy npz hdf5 mtx safetensors gguf pprof massif dhat heaptrack csv jsonl tar tfrecord beton; do
    coffer formats | sed -n "s/^\($kind\)  .*/\1/p"
done
coffer formats --json | python3 -c '
import json, sys
rows = {row["name"]: row for row in map(json.loads, sys.stdin)}
print("every own format has info and check:", all({"info", "check"} <= set(r["verbs"]) for r in rows.values() if r["own"]))
print("hdf5:", rows["hdf5"]["own"], "convert" in rows["hdf5"]["verbs"])
print("pycauset is made from npy:", "npy" in rows["pycauset"]["made_from"])'
echo "an unknown file"
echo unknown >x.bin
coffer ls x.bin 2>&1 | sed 's/known formats: .*, and/known formats: LIST, and/'
echo "help ls names the lists of every format"
coffer help ls | tr -s ' \n' '  ' | grep -o 'mcf: tensors (default)[^;]*\|mscan: sequences (default), params' | sed 's/, .*//'
echo "help info does not promise too much"
coffer help info | grep -c "Only the head" || true
