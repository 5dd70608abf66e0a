package page

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http/httptest"
	"strings"
	"testing"

	"palmares/internal/dev/check"
)

func decode(t *testing.T, data []byte) image.Image {
	t.Helper()
	i, err := png.Decode(bytes.NewReader(data))
	check.OK(t, err)
	return i
}

func pixel(i image.Image, x, y int) color.NRGBA {
	return color.NRGBAModel.Convert(i.At(x, y)).(color.NRGBA)
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := iconFiles.ReadFile("icons/" + name)
	check.OK(t, err)
	return data
}

var (
	green = color.NRGBA{0x0b, 0x6b, 0x50, 0xff}
	white = color.NRGBA{0xff, 0xff, 0xff, 0xff}
)

// The mark is white bars on green, symmetric and with sharp edges, in every size.
func TestMark(t *testing.T) {
	for name, size := range map[string]int{"icon-192.png": 192, "icon-512.png": 512} {
		i := decode(t, read(t, name))
		check.Must(t, i.Bounds().Size(), image.Pt(size, size))
		if corner, edge := pixel(i, 0, 0).A, pixel(i, size/2, 0); corner > 0x80 || edge != green {
			t.Errorf("%d: got a corner with alpha %d and an edge of %v, want a rounded green square", size, corner, edge)
		}
		var row strings.Builder // through all bars
		for x := range size {
			switch pixel(i, x, size*20/32) {
			case green:
				row.WriteByte(' ')
			case white:
				row.WriteByte('#')
			default:
				row.WriteByte('?')
			}
		}
		text := row.String()
		bars := strings.Fields(text)
		if len(bars) != 3 || bars[0] != bars[1] || bars[1] != bars[2] || strings.Contains(text, "?") ||
			strings.Index(text, "#") != size-1-strings.LastIndex(text, "#") {
			t.Errorf("%d: got %q, want three equal bars in the middle", size, text)
		}
	}
	check.Equal(t, pixel(decode(t, read(t, "apple-touch-icon.png")), 0, 0), green, "touch icon: corner of")
}

func TestICO(t *testing.T) {
	data := read(t, "favicon.ico")
	var header struct{ Reserved, Type, Count uint16 }
	r := bytes.NewReader(data)
	if err := binary.Read(r, binary.LittleEndian, &header); err != nil || header.Type != 1 || header.Count != 3 {
		t.Fatalf("got %+v and %v, want three icons", header, err)
	}
	end := 6 + 3*16
	for _, size := range []int{16, 32, 48} {
		var e struct {
			Width, Height, Colors, Reserved uint8
			Planes, Bits                    uint16
			Length, Start                   uint32
		}
		if err := binary.Read(r, binary.LittleEndian, &e); err != nil || int(e.Width) != size || e.Height != e.Width || e.Planes != 1 || e.Bits != 32 || int(e.Start) != end {
			t.Fatalf("got %+v and %v, want %d pixels at %d", e, err, size, end)
		}
		end += int(e.Length)
		check.Equal(t, decode(t, data[e.Start:end]).Bounds().Dx(), size, "image of pixels")
	}
	check.Equal(t, end, len(data), "bytes")
}

func TestHandlers(t *testing.T) {
	icons := Service{ServiceName: `palmarès "<&>`}.Icons()
	get := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		icons.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w
	}
	for path, mediaType := range map[string]string{
		"/favicon.ico": "image/x-icon", "/apple-touch-icon.png": "image/png", "/icon-192.png": "image/png", "/icon-512.png": "image/png",
		"/og.png": "image/png", "/manifest.webmanifest": "application/manifest+json",
	} {
		got := get("GET", path)
		if got.Code != 200 || got.Header().Get("Content-Type") != mediaType || got.Header().Get("Cache-Control") != "public, max-age=86400" || got.Header().Get("ETag") == "" {
			t.Errorf("%s: got %d %v, want %s", path, got.Code, got.Header(), mediaType)
		}
		if got := get("POST", path); got.Code != 405 || got.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: got %d, want 405", path, got.Code)
		}
	}
	var manifest struct {
		Name  string
		Start string `json:"start_url"`
		Icons []struct{ Src, Sizes, Type string }
	}
	if err := json.Unmarshal(get("GET", "/manifest.webmanifest").Body.Bytes(), &manifest); err != nil || manifest.Name != `palmarès "<&>` || manifest.Start != "/" || len(manifest.Icons) != 2 {
		t.Fatalf("got %+v and %v, want the service and two icons", manifest, err)
	}
	for _, icon := range manifest.Icons {
		size := decode(t, get("GET", icon.Src).Body.Bytes()).Bounds().Size()
		check.Equal(t, fmt.Sprintf("%dx%d", size.X, size.Y), icon.Sizes, icon.Src)
	}
	check.Equal(t, decode(t, get("GET", "/og.png").Body.Bytes()).Bounds().Size(), image.Pt(1200, 630), "card")
	check.Equal(t, decode(t, get("GET", "/apple-touch-icon.png").Body.Bytes()).Bounds().Dx(), 180, "touch icon: pixels")
}
