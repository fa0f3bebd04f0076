"""What a demand takes, as a circuit and as software: `handfast size`."""
