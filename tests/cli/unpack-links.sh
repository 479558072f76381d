# unpack writes nothing through symbolic links that are in the folder: names in a model are not trusted.
run() {
    echo "\$ coffer $*"
    coffer "$@" 2>&1
    echo "exit $?"
}
cp -r "$DATA/compat/mcf/hf-folder" folder
chmod -R u+w folder
mkdir folder/sub
echo notes >folder/sub/notes.txt
coffer pack -q folder model.mcf >/dev/null
mkdir outside out
echo mine >outside/victim

echo "# a link in the place of a folder"
ln -s ../outside out/sub
run unpack model.mcf out
run unpack model.mcf out --force
ls outside
rm -r out
mkdir out

echo "# links in the place of files, also ones that lead nowhere"
ln -s ../outside/victim out/config.json
run unpack model.mcf out
ln -s ../outside/new out/tokenizer.json
run unpack model.mcf out --force
cat outside/victim
ls outside
[ ! -L out/config.json ] && [ ! -L out/tokenizer.json ] && echo "the links were replaced"
cmp folder/config.json out/config.json && cmp folder/sub/notes.txt out/sub/notes.txt && echo "the files are the same"

echo "# weights that are converted"
coffer quantize -q model.mcf small.mcf --type q8 >/dev/null
mkdir converted
ln -s ../outside/victim converted/model.safetensors
coffer unpack small.mcf converted --force >/dev/null 2>&1
echo "exit $?"
[ ! -L converted/model.safetensors ] && cat outside/victim

echo "# a fifo, and a file in the place of a folder"
mkdir odd
mkfifo odd/config.json
run unpack model.mcf odd --force
rm odd/config.json
echo file >odd/sub
run unpack model.mcf odd --force

echo "# the folder itself may be a link: the user named it"
mkdir real
ln -s real named
coffer unpack model.mcf named >/dev/null && ls real | head -n 2

echo "# get -o FOLDER/ and copies of block matrices write nothing through links either"
printf '{"path": "a/one.txt", "text": "first"}\n{"path": "b/two.txt", "text": "second"}\n' >rows.jsonl
coffer convert rows.jsonl set.mldf
mkdir files other
echo mine >other/one.txt
echo mine >other/victim
ln -s ../other files/a
run get set.mldf text -o files/
rm files/a
mkdir -p files/a
ln -s ../../other/victim files/a/one.txt
run get set.mldf text -o files/
run get set.mldf text -o files/ --force
ls -l files/a/one.txt | cut -c 1
cat files/a/one.txt files/b/two.txt
cat other/one.txt other/victim
printf '1,2\n3,4\n' >m.csv
coffer convert m.csv m.pycauset
coffer pack m.pycauset m.pycauset blocks.pycauset >/dev/null
block=$(ls blocks.pycauset.blocks | head -n 1)
mkdir copy.pycauset.blocks
ln -s ../other/victim "copy.pycauset.blocks/$block"
run compact blocks.pycauset -o copy.pycauset
ls -l "copy.pycauset.blocks/$block" | cut -c 1
cat other/victim
coffer diff blocks.pycauset copy.pycauset
