# Models compared, whoever wrote them.
cd "$DATA/compat/mcf"
coffer diff hf-folder mantle-pack.mcf
echo "exit $?"
coffer diff hf-folder/model.safetensors hf-folder
echo "exit $?"
coffer diff mantle-pack.mcf mantle-q4.mcf
echo "exit $?"
coffer diff mantle-pack.mcf mantle-q8.mcf --tolerance 0.01 --max 2
echo "exit $?"
coffer diff hf-folder mantle-q4.mcf --json | cut -c1-300
coffer diff hf-folder "$DATA/vectors/mscan/two-sequences.mscan"
echo "exit $?"
coffer diff hf-folder "$DATA/vectors/mcf/truncated.mcf"
echo "exit $?"
