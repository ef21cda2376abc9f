// A chart as a PNG file: its title, the picture as it is on the page, and what it says in words.

const PADDING = 16;
const LINE = 18;

function wrapped(context, text, width) {
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (lines.at(-1) && context.measureText(longer).width > width) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

export function fileName(title) {
  const words = title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
  return `${words || "chart"}.png`;
}

function compose(canvas, { title, summary, colours }) {
  const family = getComputedStyle(document.body).fontFamily;
  const ratio = canvas.width / canvas.clientWidth;
  const width = canvas.clientWidth + 2 * PADDING;
  const picture = document.createElement("canvas");
  const context = picture.getContext("2d");
  context.font = `12px ${family}`;
  const lines = wrapped(context, summary, width - 2 * PADDING);
  const height = canvas.clientHeight + 2 * PADDING + 2 * LINE + lines.length * LINE;
  picture.width = Math.round(width * ratio);
  picture.height = Math.round(height * ratio);
  context.scale(ratio, ratio);
  context.fillStyle = colours.surface;
  context.fillRect(0, 0, width, height);
  context.fillStyle = colours.strong;
  context.font = `600 14px ${family}`;
  context.fillText(title, PADDING, PADDING + 10);
  context.drawImage(canvas, PADDING, PADDING + LINE, canvas.clientWidth, canvas.clientHeight);
  context.fillStyle = colours.text;
  context.font = `12px ${family}`;
  for (const [index, line] of lines.entries()) {
    context.fillText(line, PADDING, PADDING + 2 * LINE + canvas.clientHeight + (index + 0.5) * LINE);
  }
  return picture;
}

// `said` has the title and the summary of the chart, and the colours of the theme.
export function download(canvas, said) {
  compose(canvas, said).toBlob((blob) => {
    const link = Object.assign(document.createElement("a"), {
      href: URL.createObjectURL(blob),
      download: fileName(said.title),
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }, "image/png");
}
