package cell

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate is one that is signed by itself, for loopback. It returns where it and its key are.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	return signed(t, time.Hour, nil)
}

// signed is one that ends after a time, and is signed by another one.
func signed(t *testing.T, ends time.Duration, by *tls.Certificate) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(ends), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, crypto.PrivateKey(private)
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, parent, private.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestPeersNeedACertificateOfTheCellsAuthority(t *testing.T) {
	t.Parallel()
	a, b, _ := trio(t)
	if _, err := Found(MemberConfig{Dir: a.Dir, Node: "a", Nodes: map[string]string{"a": "127.0.0.1:0"}}, 0); err != nil {
		t.Fatal(err)
	}
	cert, key := certificate(t)
	a.CertFile, a.KeyFile, a.CAFile = cert, key, cert
	b.CertFile, b.KeyFile, b.CAFile = cert, key, cert
	m := run(t)(Start(t.Context(), a))
	putKey(t, joins(t, m, b), "k")
	all, err := m.Client().MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range all.Members {
		if url := member.PeerURLs[0]; !strings.HasPrefix(url, "https://") {
			t.Errorf("node %s is at %s", member.Name, url)
		}
	}

	own, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := tls.LoadX509KeyPair(certificate(t))
	if err != nil {
		t.Fatal(err)
	}
	late, err := tls.LoadX509KeyPair(signed(t, -time.Minute, &own))
	if err != nil {
		t.Fatal(err)
	}
	for want, shown := range map[string][]tls.Certificate{"certificate required": nil, "unknown certificate authority": {stranger}, "expired certificate": {late}} {
		conn, err := tls.Dial("tcp", a.Nodes["a"], &tls.Config{Certificates: shown, InsecureSkipVerify: true})
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
			conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
