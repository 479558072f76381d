# Every file of a model folder is packed or named, and unpack restores the folder byte for byte.
cp -r "$DATA/compat/mcf/hf-folder" folder
chmod -R u+w folder
printf 'spm\0\001' >folder/tokenizer.model
echo '{"bos_token": "<s>"}' >folder/special_tokens_map.json
echo '{"<extra>": 9}' >folder/added_tokens.json
echo '{"size": 224}' >folder/preprocessor_config.json
printf 'a\nb\n' >folder/vocab.txt
echo '# A model' >folder/README.md
mkdir folder/1_Pooling folder/.git
echo '{}' >folder/1_Pooling/config.json
: >folder/empty
mkfifo folder/pipe
head -c 3000 /dev/zero >folder/pytorch_model.bin
coffer pack folder model.mcf --max-file 2000 | sed 's/[0-9.]* KiB$/… KiB/'
coffer pack folder model.mcf -f --max-file 2000 --json | sed 's/.*"files"/"files"/'
coffer ls --what files model.mcf
coffer check --full model.mcf
coffer unpack model.mcf restored
echo "exit $?"
diff -r folder restored | sed 's|folder/||'
echo "--- any file can be added, read and removed"
coffer set model.mcf LICENSE -i folder/README.md | sed 's/, .*//'
coffer get model.mcf LICENSE
coffer set model.mcf --delete LICENSE | sed 's/, .*//'
coffer get model.mcf tokenizer.model | od -An -c
coffer set model.mcf ../outside.txt -i folder/README.md
echo "--- converted weights are not the same bytes"
coffer quantize -q model.mcf small.mcf --type q8 >/dev/null
coffer unpack small.mcf small
echo "exit $?"
ls -A small
coffer unpack small.mcf small
echo "exit $?"
echo "--- diff compares all of it"
coffer diff folder model.mcf
coffer set model.mcf README.md -i folder/vocab.txt >/dev/null
coffer set model.mcf --delete tokenizer.model >/dev/null
coffer diff folder model.mcf | grep -E 'README|tokenizer'
