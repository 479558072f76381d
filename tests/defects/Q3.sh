# Compressed sounds and videos have types of their own and are stored byte for byte.
mkdir sounds videos
cp "$DATA"/media/tone.mp3 "$DATA"/media/tone.ogg "$DATA"/media/tone.opus "$DATA"/media/header.m4a "$DATA"/media/header.aac sounds/
cp "$DATA"/media/header.mp4 "$DATA"/media/header.webm videos/
coffer pack sounds sounds.mldf >/dev/null
coffer pack videos videos.mldf >/dev/null
for set in sounds videos; do
    coffer info $set.mldf --json | grep -o '"name":"[a-z]*","type":"[a-z-]*"'
    coffer head $set.mldf
    i=0
    for file in $set/*; do
        coffer get $set.mldf $i --json >/dev/null
        coffer get $set.mldf $i.$(coffer info $set.mldf --json | grep -o '"name":"[a-z]*"' | head -n 1 | cut -d '"' -f 4) -o x --force
        cmp x "$file" && echo "$file is stored as it is"
        i=$((i + 1))
    done
    coffer check --full $set.mldf
done
coffer check --decode sounds.mldf
coffer get videos.mldf 0.video --json
coffer get videos.mldf 1.video --json
echo "# a manifest that names videos"
printf '%s\n' '{"clip": "videos/header.mp4", "caption": "one"}' '{"clip": "videos/header.webm", "caption": "two"}' >list.jsonl
coffer pack list.jsonl list.mldf | sed 's/, [0-9.]* [KM]iB//'
coffer head list.mldf
coffer get list.mldf 0.clip | cmp - videos/header.mp4
echo "# a file that is not a video"
echo text >videos/text.mp4
coffer pack videos bad.mldf
echo "exit $?"
