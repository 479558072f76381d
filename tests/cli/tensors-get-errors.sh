# Requests that a model cannot answer, and their messages.
model=$DATA/vectors/mcf/plain.mcf
say() {
    echo "\$ coffer $*"
    coffer "$@" 2>&1
    echo "exit $?"
}
say get "$model"
say get "$model" model.norm.weigth
say get "$model" nonsense
say get "$model" model.norm.weight --rows 5..2
say get "$model" model.norm.weight --rows 0..100000
say get "$model" model.norm.weight --as colors
say get "$model" config.json --rows 1
say get "$model" model.norm.weight --param x
say get "$DATA/vectors/mcf/quantised.mcf" q4.3x300
say get "$DATA/vectors/mcf/quantised.mcf" q4.3x300 --rows 1 --as raw
: >there.npy
say get "$model" model.norm.weight -o there.npy
say get "$model" model.norm.weight -o there.npy --force
say get "$model" model.norm.weight -o missing/there.npy
cp "$model" copy.mcf
ln -s copy.mcf link.mcf
mkdir folder
cp "$DATA/compat/mcf/hf-folder/model.safetensors" folder/
say get copy.mcf model.norm.weight -o copy.mcf --force
say get copy.mcf config.json -o link.mcf --force
say get folder lm_head.weight -o folder/model.safetensors --force
cmp copy.mcf "$model" && cmp folder/model.safetensors "$DATA/compat/mcf/hf-folder/model.safetensors"
say get missing.mcf x
say get "$DATA/vectors/mcf/directory-past-end.mcf" x
say stats "$model" --sort color
say stats "$model" --include 'nothing*'
say set "$model"
say set - model_name=x
say info --hash "$DATA/compat/mcf/hf-folder"
say pack "$DATA/compat/mcf/hf-folder" out.color
say pack "$DATA/compat/mcf/hf-folder" out.mscan
say pack "$DATA/compat/mcf/hf-folder"
say pack missing out.mcf
say convert "$DATA/compat/mcf/hf-folder" out.mcf
say pack "$DATA/compat/mcf/hf-folder" out.mcf --align 8
say pack "$DATA/compat/mcf/hf-folder" out.mcf --cast q4
say pack "$DATA/compat/mcf/hf-folder" out.mcf --include 'nothing*'
ls
