# Written by conda.py.
python -m pip install --no-deps cherimoya==0.3.1 tangermeme==1.6.0
