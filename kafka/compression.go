package kafka

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/IBM/sarama"
	"github.com/klauspost/compress/gzip"
	snappy "github.com/klauspost/compress/snappy/xerial"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The records of a batch are compressed as a whole. A bound on what comes out of a few bytes keeps a hostile batch from
// taking all memory; it is sarama's. What comes out lives as long as its batch waits, so it has no room beyond its end.

var errCompression = errors.New("no such compression")

// Encoders and decoders are worth keeping: each has tables of many kilobytes.
var (
	gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
	lz4Writers  = sync.Pool{New: func() any {
		w := lz4.NewWriter(nil)
		_ = w.Apply(lz4.BlockSizeOption(lz4.Block64Kb)) // it refuses other sizes only; larger ones cost every reader memory
		return w
	}}
	lz4Readers = sync.Pool{New: func() any { return lz4.NewReader(nil) }}
	zstdWriter = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithZeroFrames(true), zstd.WithEncoderConcurrency(1))
	})
	zstdReader = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(uint64(sarama.MaxDecompressedBatchSize)))
	})
)

// compressor is what gzip's and lz4's writers have in common.
type compressor interface {
	io.WriteCloser
	Reset(io.Writer)
}

// compress appends the compressed records to b.
func compress(b []byte, codec sarama.CompressionCodec, records []byte) ([]byte, error) {
	switch codec {
	case sarama.CompressionNone:
		return append(b, records...), nil
	case sarama.CompressionGZIP:
		return through(b, &gzipWriters, records)
	case sarama.CompressionLZ4:
		return through(b, &lz4Writers, records)
	case sarama.CompressionSnappy:
		return append(b, snappy.Encode(nil, records)...), nil
	case sarama.CompressionZSTD:
		w, err := zstdWriter()
		if err != nil {
			return nil, err
		}
		return w.EncodeAll(records, b), nil
	}
	return nil, fmt.Errorf("%w: %d", errCompression, codec)
}

func through(b []byte, pool *sync.Pool, records []byte) ([]byte, error) {
	w := pool.Get().(compressor)
	defer pool.Put(w)
	to := bytes.NewBuffer(b)
	w.Reset(to)
	if _, err := w.Write(records); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return to.Bytes(), nil
}

// decompress returns the records of a batch.
func decompress(codec sarama.CompressionCodec, b []byte) ([]byte, error) {
	switch codec {
	case sarama.CompressionNone:
		return b, nil
	case sarama.CompressionGZIP:
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		return bounded(r, len(b))
	case sarama.CompressionLZ4:
		r := lz4Readers.Get().(*lz4.Reader)
		defer lz4Readers.Put(r)
		r.Reset(bytes.NewReader(b))
		defer r.Reset(nil) // or the pool would keep the answer
		return bounded(r, len(b))
	case sarama.CompressionSnappy:
		return unsnap(b)
	case sarama.CompressionZSTD:
		r, err := zstdReader()
		if err != nil {
			return nil, err
		}
		return r.DecodeAll(b, nil)
	}
	return nil, fmt.Errorf("%w: %d", errCompression, codec)
}

// usually is how many times its size a batch becomes; where it is more, the memory grows.
const usually = 4

func unsnap(b []byte) ([]byte, error) {
	limit := int(sarama.MaxDecompressedBatchSize)
	for room := usually*len(b) + 1024; ; room *= 2 {
		room = min(room, limit)
		out, err := snappy.DecodeCapped(make([]byte, 0, room), b)
		if !errors.Is(err, snappy.ErrDstTooSmall) {
			return fitted(out), err
		}
		if room == limit {
			return nil, sarama.ErrDecompressedBatchTooLarge
		}
	}
}

func bounded(r io.Reader, size int) ([]byte, error) {
	limit := int64(sarama.MaxDecompressedBatchSize)
	var out bytes.Buffer
	out.Grow(min(usually*size, int(limit)))
	n, err := out.ReadFrom(io.LimitReader(r, limit+1))
	if err == nil && n > limit {
		return nil, sarama.ErrDecompressedBatchTooLarge
	}
	return fitted(out.Bytes()), err
}

// fitted returns b without much room behind it.
func fitted(b []byte) []byte {
	if cap(b) > len(b)+len(b)/4 {
		return append(make([]byte, 0, len(b)), b...)
	}
	return b
}
