# The tensors of models: of a container, a safetensors file, a folder; all or by pattern, in any order.
cd "$DATA/vectors/mcf"
coffer ls plain.mcf
coffer ls plain.mcf 'i*' --json
coffer ls plain.mcf --what sections
coffer ls plain.mcf --sort size | head -4
coffer ls plain.mcf --sort dtype --reverse | head -4
coffer ls only-config.mcf
echo "a container without tensors: exit $?"
cd "$DATA/compat/mcf"
coffer ls hf-folder '*proj*'
coffer ls hf-folder --json | head -1
coffer ls hf-folder/model.safetensors --sort offset --json | cut -c1-60
coffer ls - <hf-folder/model.safetensors | tail -2
coffer ls mantle-pack.mcf '*.weight' --sort size
echo "what is not there"
coffer ls mantle-pack.mcf --sort color
echo "exit $?"
coffer ls mantle-pack.mcf --sort shape
echo "exit $?"
coffer ls mantle-pack.mcf --what colors
echo "exit $?"
coffer ls hf-folder --what sections
echo "exit $?"
coffer ls hf-folder 'nothing*'
echo "exit $?"
coffer ls "$DATA/vectors/mcf/index-count-huge.mcf"
echo "exit $?"
