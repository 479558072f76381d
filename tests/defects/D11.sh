# Fields change for all samples, samples are selected by their values, labels go to CSV and back.
mkdir -p in/cat in/dog
for i in 0 1 2 3 4; do
    cp "$DATA/media/small.png" in/cat/$i.png
    cp "$DATA/media/alpha.png" in/dog/$i.png
done
coffer pack in set.mldf >/dev/null
echo "# labels to CSV and back"
coffer convert set.mldf labels.csv
head -n 3 labels.csv
sed 's/^\(dog[^,]*\),1/\1,7/' labels.csv >changed.csv
coffer set set.mldf --field label --values changed.csv
coffer get set.mldf --field label --json
coffer convert changed.csv table.mldf
coffer get table.mldf 9 --json
printf 'sample,label\n0,100\n' >one.csv
coffer set set.mldf --field label --values one.csv --json
printf 'label\n1\n2\n' >short.csv
coffer set set.mldf --field label --values short.csv
echo "exit $?"
printf 'path,label\nnowhere.png,1\n' >wrong.csv
coffer set set.mldf --field label --values wrong.csv
echo "exit $?"
echo "# selecting"
coffer head set.mldf --where label=7 --where 'path~*/[01].png'
coffer get set.mldf --field path --where 'label!=7' --where 'label<100'
coffer stats set.mldf --field label --where label=7
coffer get set.mldf .. --where 'image.channels=4' --field path --json
coffer head set.mldf --where 'nothing=3'
echo "exit $?"
echo "# a stratified split"
coffer split set.mldf --parts train=0.8,val=0.2 --stratify class --shuffle 1 | sed 's/, [0-9.]* KiB//'
coffer get set-val.mldf --field class --json
echo "# files with their names"
coffer get set.mldf --field image --where label=7 -o out/
find out -type f | sort
cmp out/dog/3.png in/dog/3.png && echo "the same file"
echo "# fields"
coffer rename set.mldf class=kind
coffer delete set.mldf --field label
coffer info set.mldf --json | grep -o '"name":"[a-z]*"'
coffer delete set.mldf --where kind=dog
coffer get set.mldf --field kind --json
coffer check --full set.mldf
echo "# several folders, a root, links, texts as labels"
coffer pack in/cat in/dog two.mldf | sed 's/, [0-9.]* KiB//'
coffer head two.mldf -n 1
printf 'file,animal\ncat/0.png,cat\ndog/0.png,dog\ncat/1.png,cat\n' >list.csv
coffer pack list.csv list.mldf --root in --labels animal | sed 's/, [0-9.]* KiB//'
coffer get list.mldf .. --field label --field animal --csv
mkdir linked
ln -s ../in/cat/0.png linked/a.png
ln -s ../in/dog linked/dogs
coffer pack linked linked.mldf --follow-links | sed 's/, [0-9.]* KiB//'
coffer pack linked refused.mldf
echo "exit $?"
