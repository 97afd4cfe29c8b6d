package kafka

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"millrace/devbroker"
)

// counted is a broker's connection whose faults are counted.
func counted(t *testing.T, b *devbroker.Broker, s Security, readTimeout time.Duration) (*sarama.Broker, *Faults) {
	t.Helper()
	faults := &Faults{}
	c := secured(t, s)
	c.Net.ReadTimeout = readTimeout
	faults.count(c)
	broker := sarama.NewBroker(b.Addr())
	if err := broker.Open(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() }) // Some tests have closed it before.
	if ok, err := broker.Connected(); !ok {
		t.Fatal(err)
	}
	return broker, faults
}

func ask(b *sarama.Broker) error {
	_, err := b.GetMetadata(&sarama.MetadataRequest{Version: 7})
	return err
}

func wantFaults(t *testing.T, f *Faults, atLeast int64) {
	t.Helper()
	if got := f.Load(); got < atLeast || atLeast == 0 && got != 0 {
		t.Errorf("%d faults, want %d", got, atLeast)
	}
}

func TestOrdinaryLifeOfAConnectionIsNoFault(t *testing.T) {
	b := startBroker(t, devbroker.Options{})
	broker, faults := counted(t, b, Security{}, time.Second)
	for range 3 {
		if err := ask(broker); err != nil {
			t.Fatal(err)
		}
	}
	if err := broker.Close(); err != nil {
		t.Fatal(err)
	}
	wantFaults(t, faults, 0)
}

func TestCloseByTheBrokerIsAFault(t *testing.T) {
	ca := newAuthority(t)
	for name, c := range map[string]struct {
		options  devbroker.Options
		security Security
	}{
		"plain": {},
		// TLS announces the end in a record of its own; the TCP connection underneath looks healthy then.
		"tls": {
			devbroker.Options{TLS: ca.server(t)},
			Security{TLS: TLS{Enabled: true, CAFile: writeFile(t, t.TempDir(), "ca.pem", ca.pem())}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := startBroker(t, c.options)
			broker, faults := counted(t, b, c.security, time.Second)
			b.DropResponse(devbroker.Metadata, 1)
			if err := ask(broker); err == nil {
				t.Error("a request without an answer succeeded")
			}
			wantFaults(t, faults, 1)
		})
	}
}

func TestTimeoutIsAFault(t *testing.T) {
	b := startBroker(t, devbroker.Options{})
	broker, faults := counted(t, b, Security{}, 50*time.Millisecond)
	held, release := b.Hold(devbroker.Metadata)
	defer release()
	if err := ask(broker); err == nil {
		t.Error("a request that the broker never saw succeeded")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := held.Wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
	wantFaults(t, faults, 1)
}

func TestFailedWriteIsAFault(t *testing.T) {
	near, far := net.Pipe()
	far.Close()
	faults := &Faults{}
	c := &countedConn{Conn: near, faults: faults}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Fatal("write to a closed pipe succeeded")
	}
	wantFaults(t, faults, 1)
	c.Close()
	if _, err := c.Write([]byte("x")); err == nil || faults.Load() != 1 {
		t.Errorf("write after our own close: %v, %d faults; want an error and no further fault", err, faults.Load())
	}
}

func TestDialErrorNamesTheAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = dialerOf(sarama.NewConfig()).Dial("tcp", l.Addr().String())
	if err == nil || !strings.HasPrefix(err.Error(), "dial "+l.Addr().String()) {
		t.Errorf("dial to a closed port: %v", err)
	}
}

func TestOrderOfCountAndApplyDoesNotMatter(t *testing.T) {
	c, f := sarama.NewConfig(), &Faults{}
	f.count(c)
	if err := (Security{TLS: TLS{Enabled: true}}).apply(c); err != nil {
		t.Fatal(err)
	}
	if d := dialerOf(c); d.faults != f || !d.tls.Enabled {
		t.Errorf("dialer %+v: want both the counter and TLS", d)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}
