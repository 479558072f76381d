# Folders, manifests and shards become a training set; files that cannot be read are reported, or left out.
mkdir -p pets/cat pets/dog
for i in 0 1 2; do
    coffer get "$DATA/vectors/mldf/all-types-208.mldf" $i.image -o pets/cat/$i.png
    coffer get "$DATA/vectors/mldf/all-types-208.mldf" $((i + 3)).image -o pets/dog/$i.png
done
coffer pack pets pets.mldf --page-size 4K | sed 's/, [0-9.]* KiB//'
coffer get pets.mldf --field path
coffer get pets.mldf --field label --json
coffer get pets.mldf --field class --json
coffer get pets.mldf 3.image | cmp - pets/dog/0.png && echo "pictures are stored as they are"
coffer stats pets.mldf --field label
coffer check --full pets.mldf
echo "# decoded"
coffer pack pets raw.mldf --raw --page-size 4K --json | sed 's/"size":[0-9]*/"size":…/'
coffer get raw.mldf 3.image | cksum
coffer get "$DATA/vectors/mldf/all-types-208.mldf" 3.image | cksum
echo "# more of the same, and classes by their names"
mkdir -p more/ape more/dog
cp pets/cat/0.png more/ape
cp pets/cat/1.png more/dog
coffer append pets.mldf more
coffer get pets.mldf 6..8 --json | grep -o '"label".*'
echo "# a manifest"
printf '%s\n' '{"image": "pets/cat/0.png", "caption": "one", "weight": 0.5}' \
    '{"image": "pets/dog/1.png", "caption": "two", "weight": 2}' >list.jsonl
coffer pack list.jsonl list.mldf --zstd --dedup --descriptor-stride 204 --page-size 4K | sed 's/, [0-9.]* KiB//'
coffer info list.mldf --json | grep -o '"descriptor_stride":[0-9]*'
coffer get list.mldf caption
coffer get list.mldf weight --json
coffer get list.mldf 1.caption --stored | od -An -tx1 | cut -c 1-12
echo "# once more"
coffer pack pets pets.mldf 2>&1
echo "exit $?"
coffer pack pets pets.mldf --force --page-size 4K | cut -d , -f 1
echo "# a broken picture"
head -c 20 pets/cat/0.png >pets/cat/9.png
coffer pack pets bad.mldf 2>&1
echo "exit $?"
coffer pack pets good.mldf --keep-going --page-size 4K | sed 's/, [0-9.]* KiB//'
echo "exit $?"
rm pets/cat/9.png
echo "# what leads outside"
ln -s /etc/passwd pets/cat/8.png
coffer pack pets out.mldf 2>&1
echo "exit $?"
rm pets/cat/8.png
printf '{"image": "../secret.png"}\n' >evil.jsonl
coffer pack evil.jsonl out.mldf 2>&1
echo "exit $?"
mkdir empty
coffer pack empty out.mldf 2>&1
echo "exit $?"
ls -A
echo "# pictures that are elsewhere"
printf '%s\n' '{"image": "far/0.png", "caption": "one"}' >far.jsonl
coffer pack far.jsonl far.mldf --page-size 4K | sed 's/, [0-9.]* KiB//'
