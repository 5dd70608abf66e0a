"""Reads catalog.sqlite and, if pyarrow is installed, tools.parquet in a folder."""
import json
import sqlite3
import sys

import pandas as pd

with sqlite3.connect(sys.argv[1] + "/catalog.sqlite") as db:
    tools = pd.read_sql("SELECT * FROM tools", db, parse_dates=["updated_at"])
result = {"rows": len(tools), "types": {name: str(kind) for name, kind in tools.dtypes.items()}, "parquet": None}
try:
    import pyarrow  # noqa: F401
    result["parquet"] = len(pd.read_parquet(sys.argv[1] + "/tools.parquet"))
except ImportError:
    pass
print(json.dumps(result))
