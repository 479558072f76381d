# Changing what a container says of itself, in place.
cp "$DATA/compat/mcf/mantle-pack.mcf" model.mcf
printf '{"model_type": "llama", "new": true}' >new.json
coffer set model.mcf config.json <new.json | sed 's/, .* appended/, … appended/'
coffer get model.mcf config.json; echo
coffer set model.mcf model_name='my model' context_length=8192 kv.general.license=mit --uint kv.epoch=3 --float kv.loss=0.5 | sed 's/, .* appended/, … appended/'
coffer info model.mcf | sed -n '/model name/p; /context length/p'
coffer ls model.mcf --what keys
coffer get model.mcf general.license
coffer set model.mcf --delete kv.epoch --delete tokenizer_config.json --json | sed 's/"size_[a-z]*":[0-9]*/…/g'
echo "exit $?"
coffer set model.mcf --checksum | sed 's/, .* appended/, … appended/'
coffer check --full model.mcf
coffer diff "$DATA/compat/mcf/mantle-pack.mcf" model.mcf >/dev/null
echo "exit $?"
coffer compact model.mcf | sed 's/: .* instead.*/: smaller/'
coffer check --full model.mcf
coffer get model.mcf model_name
echo "what is refused leaves the file as it was"
cp model.mcf before.mcf
echo '{"broken": ' | coffer set model.mcf config.json
echo "exit $?"
coffer set model.mcf model_name=x context_length=many
echo "exit $?"
coffer set model.mcf --delete generation_config.json
echo "exit $?"
coffer set model.mcf nonsense=1
echo "exit $?"
coffer set model.mcf TensorData <new.json
echo "exit $?"
coffer set model.mcf nonsense
echo "exit $?"
coffer set model.mcf config.json tokenizer.json <new.json
echo "exit $?"
cmp model.mcf before.mcf && ls
