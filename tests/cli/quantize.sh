# A model in fewer bits: what becomes of each tensor, what it costs, and whether that is true.
folder=$DATA/compat/mcf/hf-folder
coffer quantize "$folder" small.mcf --type k4
coffer check --full small.mcf --against "$folder"
coffer info small.mcf | sed -n '/quality/,/snr/p'
coffer ls small.mcf
coffer quantize "$folder" small.mcf --type k4 >/dev/null
echo "there already: exit $?"
coffer quantize "$folder" mixed.mcf --type k3 --type '*embed*=q8' --type 'lm_head*=keep' --type '*norm*=f16' --method exact
coffer quantize "$folder" again.mcf --type k4 --threads 1 >/dev/null && cmp small.mcf again.mcf && echo "the same bytes again"
coffer quantize "$folder" --target-bpw 6 --dry-run
coffer quantize "$folder" --type int8 --domain activations --clip 99 --dry-run --json
ls
# What is already quantized is copied, unless asked otherwise.
coffer quantize small.mcf copied.mcf --type q8 --exclude '*edge*' | tail -1
coffer quantize small.mcf requantized.mcf --type q8 --requantize --exclude '*edge*' | tail -1
# Another original than the one it was made from.
coffer check --full mixed.mcf --against small.mcf >/dev/null
echo "another original: exit $?"
