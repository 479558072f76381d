# What goes wrong with training sets, and what the command says to do next.
set="$DATA/vectors/mldf/all-types-208.mldf"
try() {
    echo "\$ coffer $*"
    coffer "$@" 2>&1
    echo "exit $?"
}
try get "$set"
try get "$set" 99
try get "$set" 3.capton
try get "$set" 3.nothing-like-it
try get "$set" 3..99
try get "$set" 5..3
try get "$set" 3.image --as wav
try get "$set" 3 --as npy
try get "$set" 3 -o out
try get "$set" 2..4 -o out
try get "$set" boxes -o boxes.npy
try get "$set" label -o folder/
try get "$set" 3.image -o "$set"
try get missing.mldf 3
try get . 3
try get "$set" 3.caption --key-file missing
printf short >key
try get "$set" 3.caption --key-file key
COFFER_KEY=xyz try get "$set" 3.caption
try head "$set" -n many
try stats "$set" --field nothing
try order "$set" --rank 4 --world 4
try order "$set" --drop-last --pad
try order "$set" --from 18
try sheet "$set"
try sheet "$set" -o sheet.gif
try sheet "$set" -o sheet.png --columns 17 --size 2048
try sheet "$DATA/vectors/mldf/empty.mldf" -o sheet.png
cp "$set" a.mldf
chmod u+w a.mldf
try delete a.mldf 17
try delete a.mldf first
try delete - 3 <a.mldf
try set a.mldf
try set a.mldf 3.label
try set a.mldf 3.label=many
try set a.mldf 3.label=1 3.label=2
try set a.mldf label=3
try set a.mldf 3.image=pixels
try set a.mldf 3.image=@missing.png
try set a.mldf 3.emb=@key
try set a.mldf --delete 3.caption
try set a.mldf --add-field score
try set a.mldf --add-field new:number
try set a.mldf --add-field new:int
printf '1\n2\n' >two.jsonl
try set a.mldf --add-field new:int --values two.jsonl
try set a.mldf --add-field label:int --values two.jsonl
try set a.mldf --values two.jsonl
try append a.mldf a.mldf
try append a.mldf missing
try append a.mldf two.jsonl
try append a.mldf "$DATA/vectors/mldf/page-2m.mldf"
try split a.mldf
try split a.mldf --parts 0.5,0.4
try split a.mldf --parts a=0.5,a=0.5
try split a.mldf --parts ../a=0.5,b=0.5
try split a.mldf --every 5 --parts 0.5,0.5
try concat a.mldf a.mldf
try concat a.mldf "$DATA/vectors/mldf/page-2m.mldf" both.mldf
try pack missing out.mldf
mkdir empty
try pack empty out.mldf
printf '{"a":1}\n' >one.jsonl
try pack one.jsonl nowhere/out.mldf
try pack key out.mldf
printf '{"a":1}\n{"a":\n' >cut.jsonl
try pack cut.jsonl out.mldf -k
try pack a.mldf out.mldf --encrypt
try pack . out.mldf --raw --jpeg-quality 90
try pack . out.mldf --dictionary 100K
try check --full "$DATA/vectors/mldf/payload-bit-flip.mldf"
try get "$DATA/vectors/mldf/payload-bit-flip.mldf" 0.image
try head "$DATA/vectors/mldf/row-ptr-past-end.mldf" -n 2
try diff "$set" "$DATA/vectors/mldf/alloc-ptr-past-end.mldf"
try diff "$set" "$DATA/vectors/mldf/row-ptr-past-end.mldf"
try diff "$DATA/vectors/mldf/row-ptr-past-end.mldf" "$set"
try concat "$DATA/vectors/mldf/checksummed.mldf" "$DATA/vectors/mldf/payload-bit-flip.mldf" both.mldf
try repair "$set" --from "$set" -o out.mldf
cmp a.mldf "$set" && echo "nothing was changed"
ls
