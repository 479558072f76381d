# Spellings of an earlier version: accepted, with a note unless --json or --quiet is given, and not in the help.
python3 "$DATA/support/trace.py" run.mlyze
set=$DATA/vectors/mldf/all-types-208.mldf
same() { # NEW OLD: the same output, and what the old one prints on stderr
    coffer $1 >new 2>&1 || true
    coffer $2 >old 2>notes || true
    cmp new old && echo "$2" && cat notes
}
same "stats run.mlyze --what leaks" "stats run.mlyze --measure live"
same "stats run.mlyze --what=temporaries" "stats run.mlyze --measure=temporary"
same "stats run.mlyze --what peak" "stats run.mlyze -m peak"
same "stats run.mlyze --what leaks --json" "stats run.mlyze --measure live --json"
same "stats run.mlyze --what leaks" "stats run.mlyze --measure live --quiet"
same "head $set --max 2" "head $set --count 2"
same "order $set --max 2" "order $set --count=2"
same "convert $set - --to jsonl --field label --field score" "convert $set - --to jsonl --fields label,score"
same "quantize $DATA/vectors/mcf/plain.mcf --dry-run --type int8" "quantize $DATA/vectors/mcf/plain.mcf -n --type int8"
echo "# a letter that means something else for another format"
coffer stats "$DATA/vectors/mscan/two-sequences.mscan" -m grad_norm --by block
echo "# capitals"
coffer stats run.mlyze --what PEAK --by Function --top 1 --csv
coffer quantize "$DATA/vectors/mcf/plain.mcf" --dry-run --type Q8 --type '*lm*=BF16' --csv | head -n 7 | tail -n 2
coffer get "$DATA/vectors/pycauset/dense-f64.pycauset" values --dtype F32 | head -n 1
coffer convert "$DATA/compat/mcf/hf-folder/model.safetensors" half.mcf --cast F16 && coffer ls half.mcf '*q_proj*' --csv
coffer stats run.mlyze --what lives
echo "exit $?"
echo "# the help and the completion have the new names only"
coffer help stats | grep -c -e --measure
coffer help head | grep -c -e --count
coffer completion bash | grep -c -e --measure -e --fields
