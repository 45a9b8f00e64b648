# Written by conda.py.
set -e
python -m pip install --no-deps cherimoya==0.3.1 tangermeme==1.6.0
