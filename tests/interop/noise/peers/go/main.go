// The other end of a classical IK handshake on flynn/noise, over stdin and stdout.
//
// Frames are a 4-byte big-endian length and bytes. Ours are: our static public key, the handshake messages, the
// handshake hash, and then every record that comes, opened and sealed again.
package main

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"

	"github.com/flynn/noise"
)

var (
	in  = bufio.NewReader(os.Stdin)
	out = bufio.NewWriter(os.Stdout)
)

func must(err error) {
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

func read() []byte {
	var size [4]byte
	_, err := io.ReadFull(in, size[:])
	if err == io.EOF {
		os.Exit(0)
	}
	must(err)
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err = io.ReadFull(in, frame)
	must(err)
	return frame
}

func write(frame []byte) {
	must(binary.Write(out, binary.BigEndian, uint32(len(frame))))
	_, err := out.Write(frame)
	must(err)
	must(out.Flush())
}

func main() {
	role, cipher, hash := os.Args[1], os.Args[2], os.Args[3]
	prologue, err := hex.DecodeString(os.Args[4])
	must(err)
	ciphers := map[string]noise.CipherFunc{"AESGCM": noise.CipherAESGCM, "ChaChaPoly": noise.CipherChaChaPoly}
	hashes := map[string]noise.HashFunc{
		"SHA256": noise.HashSHA256, "SHA512": noise.HashSHA512,
		"BLAKE2s": noise.HashBLAKE2s, "BLAKE2b": noise.HashBLAKE2b,
	}
	suite := noise.NewCipherSuite(noise.DH25519, ciphers[cipher], hashes[hash])
	static, err := suite.GenerateKeypair(rand.Reader)
	must(err)
	write(static.Public)
	config := noise.Config{
		CipherSuite: suite, Random: rand.Reader, Pattern: noise.HandshakeIK,
		Initiator: role == "initiator", Prologue: prologue, StaticKeypair: static,
	}
	if config.Initiator {
		config.PeerStatic = read()
	}
	state, err := noise.NewHandshakeState(config)
	must(err)

	var up, down *noise.CipherState
	if config.Initiator {
		message, _, _, err := state.WriteMessage(nil, []byte("asked by the peer"))
		must(err)
		write(message)
		_, up, down, err = state.ReadMessage(nil, read())
		must(err)
	} else {
		_, _, _, err := state.ReadMessage(nil, read())
		must(err)
		var message []byte
		message, up, down, err = state.WriteMessage(nil, []byte("answered by the peer"))
		must(err)
		write(message)
	}
	write(state.ChannelBinding())
	send, receive := up, down
	if !config.Initiator {
		send, receive = down, up
	}
	for {
		plaintext, err := receive.Decrypt(nil, nil, read())
		must(err)
		record, err := send.Encrypt(nil, nil, plaintext)
		must(err)
		write(record)
	}
}
