# Numbers about every tensor.
cd "$DATA/compat/mcf"
coffer stats hf-folder
coffer stats mantle-pack.mcf --include '*proj*' --sort std
coffer stats mantle-pack.mcf --sort max --top 2
coffer stats mantle-q4.mcf --exclude '*embed*' --threads 2 | cut -c1-60
coffer stats hf-folder --json --top 1 | cut -c1-200
coffer stats "$DATA/vectors/mcf/plain.mcf" --include 'empty'
coffer stats "$DATA/vectors/mcf/plain.mcf" --include 'scalar'
coffer stats hf-folder --include 'nothing*'
echo "exit $?"
