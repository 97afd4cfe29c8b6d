package kafka

import (
	"net"
	"syscall"
	"testing"

	"github.com/IBM/sarama"
)

func TestVanishedPeersAreNoticed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := dialerOf(sarama.NewConfig()).Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]struct{ level, option, want int }{
		"user timeout, ms":       {syscall.IPPROTO_TCP, tcpUserTimeout, 10_000},
		"keep-alive":             {syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
		"keep-alive idle, s":     {syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 10},
		"keep-alive interval, s": {syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 5},
		"keep-alive probes":      {syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 3},
	} {
		var got int
		var getErr error
		if err := raw.Control(func(fd uintptr) { got, getErr = syscall.GetsockoptInt(int(fd), o.level, o.option) }); err != nil {
			t.Fatal(err)
		}
		if getErr != nil || got != o.want {
			t.Errorf("%s is %d, want %d (%v)", name, got, o.want, getErr)
		}
	}
}
