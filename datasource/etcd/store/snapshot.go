package store

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"fmt"
)

// pack encodes documents for the history. Names and data may be any bytes, because
// other tools may have written them.
func pack(documents []Document) ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	if err := gob.NewEncoder(zipped).Encode(documents); err != nil {
		return nil, fmt.Errorf("store: packing the documents for the history: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return nil, fmt.Errorf("store: packing the documents for the history: %w", err)
	}
	return packed.Bytes(), nil
}

// unpack decodes what pack has encoded.
func unpack(packed []byte) ([]Document, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("the snapshot is damaged: %w", err)
	}
	var documents []Document
	if err := gob.NewDecoder(zipped).Decode(&documents); err != nil {
		return nil, fmt.Errorf("the snapshot is damaged: %w", err)
	}
	return documents, nil
}
