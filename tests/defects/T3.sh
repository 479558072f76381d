# Times keep the unit of their source; a profile answers what it knows, and says what it does not.
tools=$DATA/compat/mlyze-tools
cp "$tools/grow.massif" "$tools/grow.dhat" "$tools/grow.pb.gz" .
coffer stats grow.massif --top 1
coffer peak grow.dhat --by function --top 3
coffer leaks grow.massif --by function
coffer temporaries grow.dhat
echo "exit $?"
coffer leaks grow.massif --growth
echo "exit $?"
coffer convert grow.massif m.mlyze
coffer convert grow.dhat d.mlyze
coffer peak m.mlyze --by function --top 1
coffer peak d.mlyze --by function --top 1
coffer timeline m.mlyze -n 20
sed 's/^time_unit: i/time_unit: ms/' grow.massif >ms.massif
coffer peak ms.massif --by function --top 1
coffer peak grow.pb.gz --by function --top 1
