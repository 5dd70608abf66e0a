# Prints the number of rows and the columns of each CSV file: python3 pandas_columns.py FILE…
import json, sys
import pandas

for file in sys.argv[1:]:
    table = pandas.read_csv(file)
    columns = [[name, pandas.api.types.is_numeric_dtype(kind)] for name, kind in table.dtypes.items()]
    print(json.dumps({"rows": len(table), "columns": columns}))
