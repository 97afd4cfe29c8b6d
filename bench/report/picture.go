package report

import (
	"fmt"
	"strings"

	"millrace/bench/results"
)

// The picture's measures, in pixels.
const (
	labelWidth = 330
	barWidth   = 360
	rowHeight  = 46
	barHeight  = 14
)

// Picture draws the CPU a record of both sides as SVG; the peer's bar is full length on each line.
func Picture(c *results.Comparison) string {
	ours, peer := c.Sides()
	var rows strings.Builder
	y := 10
	for _, w := range c.Workloads {
		a, okA := results.SpreadOf(c.Of(w.ID, ours), results.Score)
		b, okB := results.SpreadOf(c.Of(w.ID, peer), results.Score)
		if w.Kind != "backlog" || !okA || !okB {
			continue
		}
		most := max(a.Median, b.Median)
		fmt.Fprintf(&rows, `<text x="%d" y="%d" text-anchor="end">%s %s</text>`+"\n", labelWidth-10, y+barHeight+5, w.ID, escape(shorten(w.Title)))
		bar(&rows, y, a.Median/most, fmt.Sprintf("Millrace %.2f µs", a.Median), "#0b7a75")
		bar(&rows, y+barHeight+2, b.Median/most, fmt.Sprintf("Kafka Streams %.2f µs", b.Median), "#b0b0b0")
		y += rowHeight
	}
	width := labelWidth + barWidth + 190
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="#ffffff"/>
%s</svg>
`, width, y+4, width, y+4, rows.String())
}

func bar(b *strings.Builder, y int, share float64, label, color string) {
	width := max(1, int(share*barWidth))
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
		labelWidth, y, width, barHeight, color, labelWidth+width+6, y+barHeight-3, escape(label))
}

func shorten(title string) string {
	if r := []rune(title); len(r) > 46 {
		return string(r[:45]) + "…"
	}
	return title
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func escape(text string) string { return escaper.Replace(text) }
