# Recordings and profiles of other tools become traces, and traces become those.
tools=$DATA/compat/mlyze-tools
coffer convert "$tools/grow.heaptrack.zst" heaptrack.mlyze
coffer convert "$tools/grow.massif" massif.mlyze
coffer convert "$tools/grow.dhat" dhat.mlyze
coffer convert "$tools/grow.pb.gz" go.mlyze
coffer convert dhat.mlyze - --to collapsed
coffer convert dhat.mlyze - --to collapsed --what leaks --lines
coffer convert massif.mlyze - --to collapsed
coffer convert go.mlyze - --to collapsed --what leaks
coffer convert dhat.mlyze - --to massif --snapshots 2
coffer convert heaptrack.mlyze again.heaptrack.gz
coffer convert again.heaptrack.gz again.mlyze
coffer diff heaptrack.mlyze again.mlyze
coffer convert heaptrack.mlyze - --to csv --window 3..6
coffer convert heaptrack.mlyze nothing.collapsed --what everything
coffer convert heaptrack.mlyze nothing.collapsed --at nowhere
coffer convert heaptrack.mlyze nothing.csv --what peak
printf 'main;work\n' | coffer convert - nothing.mlyze --from collapsed
ls
