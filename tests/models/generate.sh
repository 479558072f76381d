#!/bin/sh
# generate.sh GENERATE COFFER MODELS - the example `generate` computes what transformers computes
#
# NAME.expected has a prompt, its tokens, the logits after it and the tokens that follow, as transformers gave them
# (scripts/check-llama --store).
set -eu
generate=$1 coffer=$2 models=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

fail()
{
    echo "$*" >&2
    exit 1
}

line() # NAME NUMBER
{
    sed -n "$2p" "$models/$1.expected"
}

for name in llama qwen2 qwen3; do
    prompt=$(line $name 1)
    found=$("$generate" "$models/$name.mcf" -p "$prompt" -n 0 --list-tokens | tr '\n' ' ')
    [ "$found" = "$(line $name 2) " ] || fail "$name: tokens $found, expected $(line $name 2)"
    "$generate" "$models/$name.mcf" -p "$prompt" --logits >"$folder/logits"
    line $name 3 | tr ' ' '\n' >"$folder/expected"
    paste "$folder/logits" "$folder/expected" | awk -v name=$name '
        { d = $1 - $2; d = d < 0 ? -d : d; if (!(d <= 1e-4) || NF != 2) bad = NR; if (d > worst) worst = d }
        END { print name ": " NR " logits, largest difference " worst; exit bad || NR < 200 }' ||
        fail "$name: the logits are not those of transformers"
    # The cache: tokens one by one give what the whole text gives.
    found=$("$generate" "$models/$name.mcf" -p "$prompt" -t 0 -n 16 --ignore-end --list-tokens 2>/dev/null | tr '\n' ' ')
    [ "$found" = "$(line $name 4) " ] || fail "$name: continues with $found, expected $(line $name 4)"
done

# Quantized weights: the two ways of computing products agree, and threads change nothing.
"$coffer" quantize --type q8 "$models/llama.mcf" "$folder/q8.mcf" >/dev/null
for options in "--threads 1" "--threads 2" "--exact"; do
    # shellcheck disable=SC2086 # two words
    "$generate" "$folder/q8.mcf" -p "Once upon" --logits $options >"$folder/$(echo "$options" | tr -d ' -')"
done
cmp "$folder/threads1" "$folder/threads2"
paste "$folder/threads1" "$folder/exact" | awk '{ d = $1 - $2; if (d > 0.05 || d < -0.05) bad = 1 } END { exit bad }' ||
    fail "rounded products differ from exact ones"

# Sampling depends on the seed alone.
for seed in 1 1 2; do
    "$generate" "$models/qwen3.mcf" -p "Once" -n 24 --seed $seed --ignore-end 2>/dev/null | cksum
done >"$folder/samples"
[ "$(sort -u "$folder/samples" | wc -l)" -eq 2 ] || fail "samples of seeds 1, 1 and 2: $(cat "$folder/samples")"
"$generate" "$models/llama.mcf" -n 3 --seed 1 --top-k 5 --top-p 0.5 -t 2 >/dev/null 2>&1 || fail "no text without a prompt"

# Errors say what to do.
complain() # STATUS TEXT ARGUMENTS...
{
    expected=$1 text=$2
    shift 2
    status=0
    "$generate" "$@" >/dev/null 2>"$folder/error" || status=$?
    [ $status -eq "$expected" ] && grep -q -- "$text" "$folder/error" ||
        fail "generate $*: status $status, $(cat "$folder/error")"
}
complain 2 "no model given"
complain 2 "unknown option --color" --color "$models/llama.mcf"
complain 2 "top-p requires a number" --top-p 2 "$models/llama.mcf"
complain 3 "a model of type \"\" is not supported" "$models/../mcf/mantle-q8.mcf"
complain 3 "no tokenizer.json: pack the whole folder" "$models/../../vectors/mcf/quantised.mcf"
complain 3 "trained for 256 tokens, 1000 requested" --context 1000 "$models/llama.mcf"
complain 3 "needs a prompt" "$models/qwen2.mcf"
complain 3 "do not fit" -p "Once upon a time there was" --context 4 "$models/llama.mcf"
