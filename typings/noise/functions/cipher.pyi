from cryptography.hazmat.primitives.ciphers.aead import AESGCM

class Cipher:
    cipher: AESGCM
