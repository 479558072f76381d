# Values changed in place, a new field, samples deleted and appended; the rest stays as it was.
set="$DATA/vectors/mldf/all-types-208.mldf"
cp "$set" a.mldf
chmod u+w a.mldf
coffer set a.mldf 3.label=-7 3.caption='a red kite' 16.score=2.5 5.extra='{"new": [1, 2]}' 4.raw=@/dev/null
coffer get a.mldf 3.label
coffer get a.mldf 3.caption
coffer get a.mldf 16.score
coffer get a.mldf 5.extra
coffer get a.mldf 4.raw | wc -c
coffer get "$set" 6.image -o six.png
coffer get "$set" 6.emb -o six.npy
coffer set a.mldf 0.image=@six.png 0.emb=@six.npy 1.caption=@@home --json
coffer get a.mldf 0.image | cksum
coffer get "$set" 6.image | cksum
coffer get a.mldf 0.emb --json
coffer get "$set" 6.emb --json
coffer get a.mldf 1.caption
for sample in 2 7 15; do
    coffer get a.mldf $sample --json >now
    coffer get "$set" $sample --json | cmp - now && echo "sample $sample is what it was"
done
coffer check --full a.mldf

echo "# a new field"
seq 100 116 >ranks.jsonl
coffer set a.mldf --add-field rank:int --values ranks.jsonl
coffer get a.mldf 3.rank
python3 - <<'END'
import json
with open("notes.jsonl", "w") as file:
    for i in range(17):
        file.write(json.dumps(None if i % 3 == 0 else {"note": "note %d" % i}) + "\n")
END
coffer set a.mldf --add-field 'note:text?' --values notes.jsonl --zstd --json
coffer get a.mldf 0..4.note
coffer get "$set" emb -o emb.npy
coffer set a.mldf --add-field again:ndarray --values emb.npy
coffer get a.mldf 3.again --json
coffer set a.mldf --delete 4.note --delete 5.note
coffer get a.mldf 3..7 --field note
coffer set a.mldf --add-field 'later:json?'
coffer get a.mldf later --json
coffer ls a.mldf | cut -c 1-30
coffer check --full a.mldf

echo "# delete, append, concat, split"
coffer delete a.mldf 0 5..8 16 --json
coffer get a.mldf 0..3.caption
coffer compact a.mldf >/dev/null
coffer check --full a.mldf
cp "$set" b.mldf
chmod u+w b.mldf
coffer append b.mldf "$set"
coffer get b.mldf 17.caption
coffer concat b.mldf "$set" c.mldf --dedup
coffer stats c.mldf --json | grep -o '"shared_bytes":[0-9]*'
coffer get c.mldf 50.caption
coffer split c.mldf --parts train=0.7,val=0.2,test=0.1 --shuffle 5 -o parts
coffer split c.mldf --every 25 -o parts --json
coffer check --full parts/*.mldf | tail -n 1
for part in train val test; do coffer get parts/c-$part.mldf label; done | sort >labels
coffer get c.mldf label | sort | cmp - labels && echo "every sample is in one of them"
coffer concat parts/c-0*.mldf whole.mldf
ls
