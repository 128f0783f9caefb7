// Downloads of files that the page has in memory.

/** Lets the browser store a CSV file. */
export function saveCsv(csv: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
  link.download = name;
  link.click();
  // After the browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
