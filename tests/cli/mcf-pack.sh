# From a folder to a container, and what it says of itself.
folder=$DATA/compat/mcf/hf-folder
coffer pack "$folder" model.mcf
coffer check --full model.mcf
coffer info model.mcf
coffer ls model.mcf
coffer ls model.mcf --what sections
coffer diff "$folder" model.mcf
echo "exit $?"
coffer pack "$folder" model.mcf
echo "there already: exit $?"
coffer pack "$folder" again.mcf --name hf-folder && cmp model.mcf again.mcf && echo "the same bytes again"
coffer pack "$folder" half.mcf --cast bf16 --exclude '*edge*' --exclude lm_head.weight --name half --json
coffer ls half.mcf
coffer pack "$folder/model.safetensors" aligned.mcf --align 4K --no-dedup --no-checksums
coffer ls aligned.mcf --json | sed 's/.*"offset":\([0-9]*\).*/\1/' | while read -r offset; do echo $((offset % 4096)); done | sort -u
coffer check aligned.mcf
a=$(coffer info --hash --json model.mcf | sed 's/.*"content_hash":"\([0-9a-f]*\)".*/\1/')
b=$(coffer info --hash --json aligned.mcf | sed 's/.*"content_hash":"\([0-9a-f]*\)".*/\1/')
test -n "$a" && test "$a" = "$b" && echo "the same tensors have the same hash"
