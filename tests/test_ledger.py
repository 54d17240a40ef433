"""The ledger books what events say, block by block, and names what does not fit."""
