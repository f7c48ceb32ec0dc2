// Package certs makes a small CA and its certificates, for servers that nobody else certifies.
// Keys are of ECDSA with P-256, which also old clients know.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Pair is a certificate and its private key, both in PEM.
type Pair struct{ Cert, Key []byte }

// Span is when a certificate holds.
type Span struct{ From, Until time.Time }

// Authority is a CA.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  any
}

// New makes a CA. Its certificate has a name.
func New(name string, span Span) (*Authority, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: span.From, NotAfter: span.Until,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	pair, err := (*Authority)(nil).sign(template)
	if err != nil {
		return nil, err
	}
	return Load(pair)
}

// Load takes a CA that was made before.
func Load(p Pair) (*Authority, error) {
	both, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, err
	}
	if !both.Leaf.IsCA {
		return nil, errors.New("the certificate is not that of a CA")
	}
	return &Authority{Pair: p, cert: both.Leaf, key: both.PrivateKey}, nil
}

// Server makes the certificate of a server that clients know by these names and IP addresses.
func (a *Authority) Server(hosts []string, span Span) (Pair, error) {
	return a.serve(hosts[0], hosts, span, x509.ExtKeyUsageServerAuth)
}

// Node makes the certificate of a node, which is a server to the other nodes, and their client.
// They know it by its host, and the logs by its name.
func (a *Authority) Node(name, host string, span Span) (Pair, error) {
	return a.serve(name, []string{host}, span, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

// Renew makes a certificate that is as an old one, but for its key and its span.
func (a *Authority) Renew(old *x509.Certificate, span Span) (Pair, error) {
	return a.sign(&x509.Certificate{
		Subject: old.Subject, DNSNames: old.DNSNames, IPAddresses: old.IPAddresses, NotBefore: span.From, NotAfter: span.Until,
		KeyUsage: old.KeyUsage, ExtKeyUsage: old.ExtKeyUsage,
	})
}

func (a *Authority) serve(name string, hosts []string, span Span, usages ...x509.ExtKeyUsage) (Pair, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: span.From, NotAfter: span.Until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usages,
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.sign(template)
}

// Client makes the certificate of a client with a name.
func (a *Authority) Client(name string, span Span) (Pair, error) {
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: span.From, NotAfter: span.Until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// sign makes a key and its certificate, which ends with the CA's. Without a CA it signs itself.
func (a *Authority) sign(template *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	parent, signer := template, any(key)
	if a != nil {
		parent, signer = a.cert, a.key
		if template.NotAfter.After(parent.NotAfter) {
			template.NotAfter = parent.NotAfter
		}
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return Pair{}, err
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}
