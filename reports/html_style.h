// The look of report.html. Print uses the light colours, whatever the reader's theme.
#pragma once

#include <string_view>

namespace assay::page {

inline constexpr std::string_view kStyle = R"css(
:root{--ink:#181b20;--soft:#59616b;--line:#d9dee4;--hair:#e9ecf0;--paper:#fff;--panel:#f5f7f9;--ok:#17663a;--bad:#b3211b;
--warn:#855600;--none:#59616b;--bar:#5d7389;--rail:#e3e7ec;color-scheme:light}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e4e7eb;--soft:#9aa3ae;--line:#323a43;--hair:#242a31;--paper:#111418;
--panel:#191e24;--ok:#62c68c;--bad:#ff8b82;--warn:#e3b34f;--none:#9aa3ae;--bar:#8ba1b8;--rail:#2a3139;color-scheme:dark}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",
Arial,sans-serif}
main{max-width:78rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
code,pre,.mono{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace;font-size:.9em;font-variant-ligatures:none}
code{overflow-wrap:anywhere}
a{color:inherit;text-decoration-color:var(--line);text-underline-offset:.2em}
a:hover{text-decoration-color:currentColor}
header p{margin:0;color:var(--soft);font-size:.875rem}
h1{font-size:1.9rem;line-height:1.2;font-weight:600;letter-spacing:-.015em;margin:.25rem 0 .35rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;line-height:1.3;font-weight:600;margin:0 0 .6rem}
h3{font-size:1rem;font-weight:600;margin:1.6rem 0 .4rem;overflow-wrap:anywhere}
section{margin-top:2.75rem}
p{max-width:46rem;margin:0 0 .8rem;overflow-wrap:anywhere}
.soft,small{color:var(--soft)}
p.soft{font-size:.9375rem}
.finding dl+dl{margin-top:1.2rem}
small{font-size:.8125rem}
nav{margin-top:1.5rem;padding:.6rem 0;border-top:1px solid var(--line);border-bottom:1px solid var(--line);font-size:.875rem;
display:flex;flex-wrap:wrap;gap:.2rem 1.25rem}
.verdict{margin-top:1.75rem;border:1px solid var(--line);border-left:6px solid var(--mark);border-radius:4px;background:var(--panel);
padding:1.35rem 1.5rem 1.25rem}
.verdict.ok{--mark:var(--ok)}.verdict.bad{--mark:var(--bad)}.verdict.warn{--mark:var(--warn)}
.verdict h2{font-size:1.65rem;letter-spacing:.01em;color:var(--mark);margin:0 0 .35rem}
.verdict p{font-size:1.0625rem;margin:0;max-width:60rem}
.verdict ul{margin:.7rem 0 0}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.9rem 1.5rem;margin:1.25rem 0 0;padding-top:1.1rem;
border-top:1px solid var(--line)}
.figures div{min-width:0}
.figures dt{font-size:.8125rem;color:var(--soft)}
.figures dd{margin:0;font-size:1.2rem;font-weight:600;font-variant-numeric:tabular-nums}
.figures dd small{font-weight:400;display:block;line-height:1.35}
ul.plain{margin:0;padding-left:1.15rem;max-width:52rem}
ul.plain li{margin:.2rem 0;overflow-wrap:anywhere}
dl.pairs{display:grid;grid-template-columns:minmax(8rem,13rem) 1fr;margin:0;font-size:.9375rem;border-top:1px solid var(--line)}
dl.pairs>dt,dl.pairs>dd{padding:.4rem 0;margin:0;border-bottom:1px solid var(--hair);min-width:0;overflow-wrap:anywhere}
dl.pairs>dt{color:var(--soft);padding-right:1rem}
.scroll{overflow-x:auto;border-top:1px solid var(--line);border-bottom:1px solid var(--line)}
.scroll:focus-visible{outline:2px solid var(--bar);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:.875rem;line-height:1.4}
th,td{text-align:left;vertical-align:top;padding:.5rem .9rem .5rem 0;border-bottom:1px solid var(--hair)}
th:last-child,td:last-child{padding-right:.25rem}
tbody:last-child tr:last-child>*{border-bottom:0}
thead th{font-weight:600;color:var(--soft);font-size:.8125rem;vertical-align:bottom;border-bottom:1px solid var(--line)}
tbody th{font-weight:400}
td code,th code{overflow-wrap:normal}
.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.wide{min-width:17rem}.middle{min-width:9.5rem}
td small,th small{display:block;font-size:.92em}
tr.group>th{background:var(--panel);padding:.5rem .6rem;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
.badge{white-space:nowrap;font-weight:600}
.badge i{font-style:normal;display:inline-block;min-width:1em;text-align:center}
.ok{color:var(--ok)}.bad{color:var(--bad)}.warn{color:var(--warn)}.none{color:var(--none)}
.badge.none{font-weight:400}
.verdict.ok,.verdict.bad,.verdict.warn{color:inherit}
.finding{border-top:1px solid var(--line);padding-top:.9rem;margin-top:1.3rem}
.finding h3{margin:0 0 .3rem}
.finding .badge{margin-left:.4rem;font-size:.875rem}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}
pre.command{background:var(--panel);border:1px solid var(--line);border-radius:4px;padding:.6rem .8rem}
svg{display:block}
.histogram{border-bottom:1px solid var(--line)}
.histogram path,.meter .fill{fill:var(--bar)}.meter .rail{fill:var(--rail)}.meter .over{fill:var(--bad)}
.meter{margin:.25rem 0 0 auto}
.axis{display:flex;justify-content:space-between;width:128px;font-size:.6875rem;line-height:1.5;color:var(--soft);
font-variant-numeric:tabular-nums;white-space:nowrap}
.isas{display:grid;grid-template-columns:auto 1fr auto 1fr;gap:0 .6rem;min-width:13rem;font-variant-numeric:tabular-nums}
.isas b{text-align:right;padding-right:.6rem}
.sign td{height:2.9rem;border-bottom:1px solid var(--line)}
.narrow{max-width:38rem}
.after{margin-top:.9rem}
@media (max-width:40rem){main{padding:1.5rem 1rem 3rem}h1{font-size:1.5rem}.verdict{padding:1.1rem}
dl.pairs{grid-template-columns:1fr}dl.pairs>dt{border-bottom:0;padding-bottom:0}dl.pairs>dd{padding-top:.05rem}}
@page{size:A4 landscape;margin:14mm}
@media print{html{font-size:9.5pt}body{font-size:1rem}main{max-width:none;padding:0}nav{display:none}section{margin-top:1.6rem}
.scroll{overflow:visible}table{font-size:.8rem}th,td{padding:.3rem .5rem .3rem 0}.wide,.middle,.isas{min-width:0}
tr,dl.pairs,.verdict,#approvals{break-inside:avoid}h2,h3,tr.group,.finding>p{break-after:avoid}thead{display:table-header-group}
.verdict,tr.group>th,pre.command,svg{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
)css";

}  // namespace assay::page
